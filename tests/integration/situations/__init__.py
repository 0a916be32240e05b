"""Each command of `eos` about a sink that is healthy, in doubt, fenced or frozen: as_text.md, with_json.md."""
