"""The five specs, sentence by sentence, over the wire. `docs/specs.md` maps sentences to tests."""
