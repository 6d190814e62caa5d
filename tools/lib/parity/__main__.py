import sys

try:
    from parity import command
except ImportError as error:
    sys.exit("parity: %s: set TROUPE_PYTHON to a Python that has torch, numpy "
             "and safetensors" % error)

if __name__ == "__main__":
    sys.exit(command.main())
