"""What each command of `eos` says of a sink that is healthy, in doubt, fenced or frozen: as_text.md, with_json.md."""
