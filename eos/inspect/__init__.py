"""Things to read: the topics of a namespace, the rows of a topic without Spark, and views of them in Spark."""
