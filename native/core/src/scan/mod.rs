//! Counting what the lexer sees.
