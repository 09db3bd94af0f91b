"""The five specs, sentence by sentence, over the wire. `docs/specs.md` says which test is whose."""
