"""Model providers: HTTP requests to model APIs, their answers, keys and retries."""
