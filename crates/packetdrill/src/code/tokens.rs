//! The tokens of code.

use crate::position::{Position, SyntaxError};

#[derive(Clone, Debug, PartialEq)]
pub enum Symbol {
    Number(f64),
    Text(String),
    Name(String),
    Sign(&'static str),
    /// A sign of Python that this evaluator does not have.
    Foreign(char),
    /// The end of a line, or `;`.
    Separator,
    End,
}

/// Signs, the longer ones first.
const SIGNS: [&str; 24] = [
    "==", "!=", "<=", ">=", "<<", ">>", "//", "+=", "-=", "*=", "<", ">", "=", "+", "-", "*", "/", "%", "&", "|", "~",
    "(", ")", ",",
];

struct Token {
    symbol: Symbol,
    at: Position,
    text: String,
}

/// Reads tokens one by one.
pub struct Reader {
    tokens: Vec<Token>,
    next: usize,
    /// Expressions around the current one.
    depth: u32,
}

/// Expressions within expressions, each on the stack of the thread.
const MOST_NESTED: u32 = 100;
/// Tokens of a statement: an expression is at most as deep.
const LONGEST: usize = 1000;

impl Reader {
    pub fn new(text: &str, begin: Position) -> Result<Self, SyntaxError> {
        let mut tokens = Vec::new();
        let (mut at, mut rest, mut depth) = (begin, text, 0_usize);
        while !rest.is_empty() {
            let (symbol, length) = token(rest, at)?;
            let symbol = symbol.filter(|symbol| *symbol != Symbol::Separator || depth == 0);
            match symbol {
                Some(Symbol::Sign("(")) => depth += 1,
                Some(Symbol::Sign(")")) => depth = depth.saturating_sub(1),
                _ => {}
            }
            let (taken, left) = rest.split_at(length);
            tokens.extend(symbol.map(|symbol| Token { symbol, at, text: taken.into() }));
            at = at.after(taken);
            rest = left;
        }
        tokens.push(Token { symbol: Symbol::End, at, text: String::new() });
        Ok(Self { tokens, next: 0, depth: 0 })
    }

    pub fn peek(&self) -> &Symbol {
        &self.tokens[self.next].symbol
    }

    /// The first sign of Python that this evaluator does not have.
    pub fn foreign(&self) -> Option<char> {
        self.tokens.iter().find_map(|token| match token.symbol {
            Symbol::Foreign(sign) => Some(sign),
            _ => None,
        })
    }

    pub fn at(&self) -> Position {
        self.tokens[self.next].at
    }

    pub const fn index(&self) -> usize {
        self.next
    }

    /// The tokens from `begin` on that were taken, as text.
    pub fn text_since(&self, begin: usize) -> String {
        let words: Vec<_> = self.tokens[begin..self.next].iter().map(|token| token.text.as_str()).collect();
        words.join(" ").replace("( ", "(").replace(" )", ")")
    }

    pub fn take(&mut self) {
        if *self.peek() != Symbol::End {
            self.next += 1;
        }
    }

    pub fn is(&self, sign: &str) -> bool {
        matches!(self.peek(), Symbol::Sign(next) if *next == sign)
    }

    pub fn accept(&mut self, sign: &str) -> bool {
        let is = self.is(sign);
        self.next += usize::from(is);
        is
    }

    pub fn accept_name(&mut self, name: &str) -> bool {
        let is = matches!(self.peek(), Symbol::Name(next) if next == name);
        self.next += usize::from(is);
        is
    }

    /// Skips to the next statement. Returns whether there is none.
    pub fn skip_separators(&mut self) -> bool {
        while *self.peek() == Symbol::Separator {
            self.next += 1;
        }
        *self.peek() == Symbol::End
    }

    /// Checks the length of the statement that begins here.
    pub fn check_length(&self) -> Result<(), SyntaxError> {
        let is_end = |token: &Token| matches!(token.symbol, Symbol::Separator | Symbol::End);
        let length = self.tokens[self.next..].iter().position(is_end).unwrap_or_default();
        if length > LONGEST {
            return Err(SyntaxError::new(self.at(), format!("a statement has at most {LONGEST} words and signs")));
        }
        Ok(())
    }

    /// Reads with `read` what is part of an expression.
    pub fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, SyntaxError>) -> Result<T, SyntaxError> {
        if self.depth == MOST_NESTED {
            return Err(SyntaxError::new(self.at(), format!("more than {MOST_NESTED} expressions within each other")));
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    pub fn expect_end_of_statement(&self) -> Result<(), SyntaxError> {
        match self.peek() {
            Symbol::Separator | Symbol::End => Ok(()),
            _ => Err(self.unexpected("the end of the statement")),
        }
    }

    pub fn unexpected(&self, expected: &str) -> SyntaxError {
        let token = &self.tokens[self.next];
        let found = match token.symbol {
            Symbol::Separator => "the end of the line".into(),
            Symbol::End => "the end".into(),
            _ => format!("`{}`", token.text),
        };
        SyntaxError::new(token.at, format!("expected {expected}, not {found}"))
    }
}

/// The token at the start of `rest`, if it is not blank, and its length.
fn token(rest: &str, at: Position) -> Result<(Option<Symbol>, usize), SyntaxError> {
    let first = rest.chars().next().expect("the rest is not empty");
    let run = |fits: fn(char) -> bool| rest.find(|c| !fits(c)).unwrap_or(rest.len());
    Ok(match first {
        '\n' | ';' => (Some(Symbol::Separator), 1),
        '\\' if rest[1..].trim_start_matches([' ', '\t', '\r']).starts_with('\n') => {
            (None, rest.find('\n').unwrap_or(0) + 1)
        }
        '#' => (None, rest.find('\n').unwrap_or(rest.len())),
        _ if first.is_whitespace() => (None, first.len_utf8()),
        '\'' | '"' => {
            let end = rest[1..].find([first, '\n']).filter(|end| !rest[1 + end..].starts_with('\n'));
            let end = end.ok_or_else(|| SyntaxError::new(at, "the string that begins here has no end"))?;
            (Some(Symbol::Text(rest[1..=end].into())), end + 2)
        }
        _ if first.is_ascii_digit() || first == '.' && rest[1..].starts_with(|c: char| c.is_ascii_digit()) => {
            let length = run(|c| c.is_ascii_alphanumeric() || c == '.');
            let text = &rest[..length];
            let hex = text.strip_prefix("0x").and_then(|digits| i64::from_str_radix(digits, 16).ok());
            let number = hex.map(|number| number as f64).or_else(|| text.parse().ok());
            let number = number.ok_or_else(|| SyntaxError::new(at, format!("`{text}` is not a number")))?;
            (Some(Symbol::Number(number)), length)
        }
        _ if first.is_ascii_alphabetic() || first == '_' => {
            let length = run(|c| c.is_ascii_alphanumeric() || c == '_');
            (Some(Symbol::Name(rest[..length].into())), length)
        }
        _ => match SIGNS.into_iter().find(|sign| rest.starts_with(sign)) {
            Some(sign) => (Some(Symbol::Sign(sign)), sign.len()),
            None if ".[]{}:@^".contains(first) => (Some(Symbol::Foreign(first)), 1),
            None => return Err(SyntaxError::new(at, format!("unexpected character `{first}`"))),
        },
    })
}
