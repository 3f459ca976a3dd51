"""Where mcce is measured: experiments, rival methods, further generators and distances."""
