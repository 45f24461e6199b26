//! A C++ lexer over bytes.
