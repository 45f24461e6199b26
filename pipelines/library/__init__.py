"""cppmill in a program: the commands as functions, a finished run as an object. `import cppmill` gives all of it."""
