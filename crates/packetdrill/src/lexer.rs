//! The tokens of a script.

use std::fmt;

use crate::position::{Position, SyntaxError};

/// A token with its position.
#[derive(Clone, Debug, PartialEq)]
pub struct Token<'a> {
    pub at: Position,
    /// Whether it is the first of its line.
    pub leads: bool,
    /// Whether it follows the one before it without a blank.
    pub adjoins: bool,
    pub kind: Kind<'a>,
}

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind<'a> {
    Integer(i64),
    /// A number with a point, also as written: the part after it may be an ACE field.
    Decimal(f64, &'a str),
    Word(&'a str),
    /// Without its quotation marks.
    Text(&'a str),
    /// A command between back quotes.
    Command(&'a str),
    /// What is between `%{` and `}%`.
    Code(&'a str),
    /// `--name`, without the dashes.
    Flag(&'a str),
    Ellipsis,
    Sign(char),
    End,
}

impl fmt::Display for Kind<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(number) => write!(f, "`{number}`"),
            Self::Decimal(_, text) | Self::Word(text) => write!(f, "`{text}`"),
            Self::Text(text) => write!(f, "\"{text}\""),
            Self::Command(_) => f.write_str("a command in back quotes"),
            Self::Code(_) => f.write_str("code in %{ }%"),
            Self::Flag(name) => write!(f, "`--{name}`"),
            Self::Ellipsis => f.write_str("`...`"),
            Self::Sign(sign) => write!(f, "`{sign}`"),
            Self::End => f.write_str("the end of the script"),
        }
    }
}

/// The tokens of `text`; the last is [`Kind::End`].
pub fn tokens(text: &str) -> Result<Vec<Token<'_>>, SyntaxError> {
    let mut lexer = Lexer { rest: text, at: Position { line: 1, column: 1 }, leads: true };
    let mut tokens = Vec::new();
    loop {
        let before = lexer.at;
        lexer.skip_blank()?;
        let (at, leads) = (lexer.at, lexer.leads);
        let kind = lexer.next()?;
        lexer.leads = false;
        tokens.push(Token { at, leads, adjoins: at == before && !tokens.is_empty(), kind });
        if kind == Kind::End {
            return Ok(tokens);
        }
    }
}

struct Lexer<'a> {
    rest: &'a str,
    at: Position,
    leads: bool,
}

impl<'a> Lexer<'a> {
    /// Takes `length` bytes.
    fn take(&mut self, length: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(length);
        self.at = self.at.after(taken);
        self.rest = rest;
        taken
    }

    /// Skips white space and comments.
    fn skip_blank(&mut self) -> Result<(), SyntaxError> {
        loop {
            let blank = self.rest.len() - self.rest.trim_start().len();
            if self.take(blank).contains('\n') {
                self.leads = true;
            }
            if self.rest.starts_with("//") {
                self.take(self.rest.find('\n').unwrap_or(self.rest.len()));
            } else if self.rest.starts_with("/*") {
                let end = self.rest.find("*/").ok_or_else(|| self.unclosed("comment", "*/"))?;
                if self.take(end + 2).contains('\n') {
                    self.leads = true;
                }
            } else {
                return Ok(());
            }
        }
    }

    fn next(&mut self) -> Result<Kind<'a>, SyntaxError> {
        let Some(first) = self.rest.chars().next() else { return Ok(Kind::End) };
        if self.rest.starts_with("...") {
            self.take(3);
            return Ok(Kind::Ellipsis);
        }
        if self.rest.starts_with("%{") {
            let end = self.rest.find("}%").ok_or_else(|| self.unclosed("code", "}%"))?;
            return Ok(Kind::Code(&self.take(end + 2)[2..end]));
        }
        match first {
            '`' => Ok(Kind::Command(self.quoted('`', "command")?)),
            '"' => Ok(Kind::Text(self.quoted('"', "string")?)),
            '-' if self.rest.starts_with("--") => {
                let length = self.run(2, |c| c.is_ascii_alphanumeric() || c == '_');
                Ok(Kind::Flag(&self.take(length)[2..]))
            }
            _ => self.number_or_word(first),
        }
    }

    /// The longest of an integer, a decimal and a word, as the lexer of packetdrill takes it.
    fn number_or_word(&mut self, first: char) -> Result<Kind<'a>, SyntaxError> {
        let sign = usize::from(first == '-');
        let digits = self.run(sign, |c| c.is_ascii_digit());
        let fraction =
            if self.rest[digits..].starts_with('.') { self.run(digits + 1, |c| c.is_ascii_digit()) } else { 0 };
        let word = self.run(0, |c| c.is_ascii_alphanumeric() || c == '_');
        if fraction > digits + 1 && fraction > word {
            let at = self.at;
            let text = self.take(fraction);
            let value = text.parse().map_err(|_| SyntaxError::new(at, format!("`{text}` is not a number")))?;
            return Ok(Kind::Decimal(value, text));
        }
        if digits > sign && digits >= word {
            let at = self.at;
            let text = self.take(digits);
            let value = text.parse().map_err(|_| SyntaxError::new(at, format!("`{text}` has too many digits")))?;
            return Ok(Kind::Integer(value));
        }
        if word > 0 {
            let text = self.take(word);
            let hex = text.strip_prefix("0x").and_then(|digits| i64::from_str_radix(digits, 16).ok());
            return Ok(hex.map_or(Kind::Word(text), Kind::Integer));
        }
        self.take(first.len_utf8());
        Ok(Kind::Sign(first))
    }

    /// Length of what begins with `from` bytes and goes on with characters that `fit`.
    fn run(&self, from: usize, fit: impl Fn(char) -> bool) -> usize {
        self.rest[from..].find(|c| !fit(c)).map_or(self.rest.len(), |length| from + length)
    }

    /// A token between two `quote`s; a backslash protects the next character.
    fn quoted(&mut self, quote: char, what: &str) -> Result<&'a str, SyntaxError> {
        let mut escaped = false;
        let end = self.rest[1..].find(|c| {
            let ends = c == quote && !escaped;
            escaped = c == '\\' && !escaped;
            ends
        });
        let end = end.ok_or_else(|| self.unclosed(what, &quote.to_string()))?;
        Ok(&self.take(end + 2)[1..=end])
    }

    fn unclosed(&self, what: &str, end: &str) -> SyntaxError {
        SyntaxError::new(self.at, format!("the {what} that begins here has no end: `{end}` is missing"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<Kind<'_>> {
        tokens(text).expect("valid tokens").into_iter().map(|token| token.kind).collect()
    }

    #[test]
    fn numbers_words_and_ellipses() {
        assert_eq!(
            kinds("+.01...0.011 connect"),
            [
                Kind::Sign('+'),
                Kind::Decimal(0.01, ".01"),
                Kind::Ellipsis,
                Kind::Decimal(0.011, "0.011"),
                Kind::Word("connect"),
                Kind::End
            ]
        );
        assert_eq!(
            kinds("P. 1:-5 0x1f"),
            [
                Kind::Word("P"),
                Kind::Sign('.'),
                Kind::Integer(1),
                Kind::Sign(':'),
                Kind::Integer(-5),
                Kind::Integer(31),
                Kind::End
            ]
        );
    }

    #[test]
    fn comments_are_skipped_and_positions_counted() {
        let tokens = tokens("// one\n/* two\n*/ 5 %{ a\nb }% 'x").expect("valid tokens");
        let at: Vec<_> = tokens.iter().map(|token| (token.at.line, token.at.column, token.leads)).collect();
        assert_eq!(at, [(3, 4, true), (3, 6, false), (4, 6, false), (4, 7, false), (4, 8, false)]);
    }

    #[test]
    fn an_open_quote_is_an_error_at_its_begin() {
        let error = tokens("0 `sysctl -q").expect_err("it has no end");
        assert_eq!(error.to_string(), "1:3: the command that begins here has no end: ``` is missing");
    }
}
