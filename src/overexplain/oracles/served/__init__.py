"""A service as a real HTTP endpoint, for tests and demonstrations; needs starlette and uvicorn (`overexplain[serve]`)."""
