"""`python -m cppmill`: the command line."""

from cppmill import main

if __name__ == "__main__":
    main()
