"""Drills: break everything a job stands on, count what came out, and write down what was seen.

The journal comes first; a report is made of the journal alone. Needs the extra `spark-pulsar-eos[drills]`.
"""
