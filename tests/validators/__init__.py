"""What each provider's published rules say about a request, as code of its own: it imports none of ours."""
