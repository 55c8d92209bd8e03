//! Code in `%{ }%`: assertions about `tcpi_*`, in a small part of Python.
//!
//! Statements are `assert`, `print(…)` and assignments; expressions have numbers, strings, names,
//! `min`, `max`, `abs`, arithmetic, comparisons, and `and`, `or`, `not`.

mod evaluate;
mod tokens;

use std::collections::BTreeMap;

use crate::position::{Position, SyntaxError};
use tokens::{Reader, Symbol};

/// The statements of one `%{ }%`.
#[derive(Debug)]
pub struct Code {
    statements: Vec<Statement>,
    /// What this evaluator does not have.
    pub unsupported: Option<String>,
}

#[derive(Debug)]
struct Statement {
    line: u32,
    kind: StatementKind,
}

#[derive(Debug)]
enum StatementKind {
    Assert { condition: Expression, text: String, message: Option<Expression> },
    Assign { name: String, value: Expression },
    Print,
}

#[derive(Clone, Debug)]
enum Expression {
    Number(f64),
    Text(String),
    Name(String),
    Tuple(Vec<Self>),
    Call(String, Vec<Self>),
    Unary(Unary, Box<Self>),
    Binary(Binary, Box<Self>, Box<Self>),
    /// `a < b <= c`: each neighbours are compared.
    Comparison(Box<Self>, Vec<(Comparison, Self)>),
    And(Vec<Self>),
    Or(Vec<Self>),
}

#[derive(Clone, Copy, Debug)]
enum Unary {
    Minus,
    Invert,
    Not,
}

#[derive(Clone, Copy, Debug)]
enum Binary {
    Add,
    Subtract,
    Multiply,
    Divide,
    FloorDivide,
    Modulo,
    BitAnd,
    BitOr,
    ShiftLeft,
    ShiftRight,
}

#[derive(Clone, Copy, Debug)]
enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// Variables that code assigns, for later code of the script.
pub type Variables = BTreeMap<String, f64>;

/// Why code does not succeed, with its line.
#[derive(Debug)]
pub enum CodeError {
    /// An assertion does not hold.
    Failed(u32, String),
    /// A name without a value.
    Unknown(u32, String),
}

/// Words of Python that this evaluator does not have, at the begin of a statement.
const STATEMENTS: [&str; 10] = ["import", "from", "for", "while", "if", "def", "class", "try", "with", "global"];

impl Code {
    /// Reads code that begins at `at`.
    pub fn parse(text: &str, at: Position) -> Result<Self, SyntaxError> {
        let mut reader = Reader::new(text, at)?;
        let mut code = Self { statements: Vec::new(), unsupported: None };
        if let Some(sign) = reader.foreign() {
            code.unsupported = Some(format!("code with `{sign}`"));
            return Ok(code);
        }
        while !reader.skip_separators() {
            if let Symbol::Name(name) = reader.peek()
                && STATEMENTS.contains(&name.as_str())
            {
                code.unsupported = Some(format!("the statement `{name}` of Python"));
                return Ok(code);
            }
            reader.check_length()?;
            let statement = statement(&mut reader)?;
            code.statements.push(statement);
            reader.expect_end_of_statement()?;
        }
        Ok(code)
    }

    /// All names that it reads and does not assign itself.
    pub fn names(&self) -> Vec<&str> {
        let mut names = Vec::new();
        for statement in &self.statements {
            match &statement.kind {
                StatementKind::Assert { condition, .. } => condition.names(&mut names),
                StatementKind::Assign { value, .. } => value.names(&mut names),
                StatementKind::Print => {}
            }
        }
        names
    }

    /// Runs it. `lookup` has the values of names that are no variables.
    pub fn run(&self, variables: &mut Variables, lookup: &dyn Fn(&str) -> Option<f64>) -> Result<(), CodeError> {
        for Statement { line, kind } in &self.statements {
            let evaluate = |expression: &Expression, variables: &Variables| {
                let value = |name: &str| variables.get(name).copied().or_else(|| lookup(name));
                expression.evaluate(&value).map_err(|problem| CodeError::Unknown(*line, problem))
            };
            match kind {
                StatementKind::Print => {}
                StatementKind::Assign { name, value } => {
                    let value = evaluate(value, variables)?;
                    let Some(number) = value.number() else {
                        let problem = format!("a variable with `{value}`, which is not a number");
                        return Err(CodeError::Unknown(*line, problem));
                    };
                    variables.insert(name.clone(), number);
                }
                StatementKind::Assert { condition, text, message } => {
                    if evaluate(condition, variables)?.is_true() {
                        continue;
                    }
                    let shown = match message {
                        Some(message) => evaluate(message, variables)?.to_string(),
                        None => String::new(),
                    };
                    let shown = if shown.is_empty() { shown } else { format!(": {shown}") };
                    return Err(CodeError::Failed(*line, format!("assert {text}{shown}")));
                }
            }
        }
        Ok(())
    }
}

fn statement(reader: &mut Reader) -> Result<Statement, SyntaxError> {
    let line = reader.at().line;
    if reader.accept_name("assert") {
        let begin = reader.index();
        let condition = expression(reader)?;
        let text = reader.text_since(begin);
        let message = if reader.accept(",") { Some(expression(reader)?) } else { None };
        return Ok(Statement { line, kind: StatementKind::Assert { condition, text, message } });
    }
    let Symbol::Name(name) = reader.peek().clone() else {
        return Err(reader.unexpected("a statement: assert, print or an assignment"));
    };
    reader.take();
    if name == "print" {
        expression(reader)?;
        return Ok(Statement { line, kind: StatementKind::Print });
    }
    let operation =
        [("=", None), ("+=", Some(Binary::Add)), ("-=", Some(Binary::Subtract)), ("*=", Some(Binary::Multiply))]
            .into_iter()
            .find(|(sign, _)| reader.accept(sign));
    let Some((_, operation)) = operation else {
        return Err(reader.unexpected("`=`, `+=`, `-=` or `*=` after a name"));
    };
    let mut value = expression(reader)?;
    if let Some(operation) = operation {
        value = Expression::Binary(operation, Box::new(Expression::Name(name.clone())), Box::new(value));
    }
    Ok(Statement { line, kind: StatementKind::Assign { name, value } })
}

fn expression(reader: &mut Reader) -> Result<Expression, SyntaxError> {
    reader.nested(disjunction)
}

fn disjunction(reader: &mut Reader) -> Result<Expression, SyntaxError> {
    let mut parts = vec![conjunction(reader)?];
    while reader.accept_name("or") {
        parts.push(conjunction(reader)?);
    }
    Ok(if parts.len() == 1 { parts.remove(0) } else { Expression::Or(parts) })
}

fn conjunction(reader: &mut Reader) -> Result<Expression, SyntaxError> {
    let mut parts = vec![negation(reader)?];
    while reader.accept_name("and") {
        parts.push(negation(reader)?);
    }
    Ok(if parts.len() == 1 { parts.remove(0) } else { Expression::And(parts) })
}

fn negation(reader: &mut Reader) -> Result<Expression, SyntaxError> {
    if reader.accept_name("not") {
        return Ok(Expression::Unary(Unary::Not, Box::new(reader.nested(negation)?)));
    }
    let first = binary(reader, 0)?;
    let mut others = Vec::new();
    loop {
        let signs = [
            ("==", Comparison::Equal),
            ("!=", Comparison::NotEqual),
            ("<=", Comparison::LessOrEqual),
            (">=", Comparison::GreaterOrEqual),
            ("<", Comparison::Less),
            (">", Comparison::Greater),
        ];
        let Some((_, comparison)) = signs.into_iter().find(|(sign, _)| reader.accept(sign)) else { break };
        others.push((comparison, binary(reader, 0)?));
    }
    Ok(if others.is_empty() { first } else { Expression::Comparison(Box::new(first), others) })
}

/// Binary operators, those that bind least first.
const PRECEDENCE: [&[(&str, Binary)]; 5] = [
    &[("|", Binary::BitOr)],
    &[("&", Binary::BitAnd)],
    &[("<<", Binary::ShiftLeft), (">>", Binary::ShiftRight)],
    &[("+", Binary::Add), ("-", Binary::Subtract)],
    &[("*", Binary::Multiply), ("//", Binary::FloorDivide), ("/", Binary::Divide), ("%", Binary::Modulo)],
];

fn binary(reader: &mut Reader, level: usize) -> Result<Expression, SyntaxError> {
    let Some(operators) = PRECEDENCE.get(level) else { return unary(reader) };
    let mut left = binary(reader, level + 1)?;
    while let Some((_, operator)) = operators.iter().find(|(sign, _)| reader.accept(sign)) {
        let right = binary(reader, level + 1)?;
        left = Expression::Binary(*operator, Box::new(left), Box::new(right));
    }
    Ok(left)
}

fn unary(reader: &mut Reader) -> Result<Expression, SyntaxError> {
    let operator = [("-", Unary::Minus), ("~", Unary::Invert)].into_iter().find(|(sign, _)| reader.accept(sign));
    if let Some((_, operator)) = operator {
        return Ok(Expression::Unary(operator, Box::new(reader.nested(unary)?)));
    }
    match reader.peek().clone() {
        Symbol::Number(number) => {
            reader.take();
            Ok(Expression::Number(number))
        }
        Symbol::Text(text) => {
            reader.take();
            Ok(Expression::Text(text))
        }
        Symbol::Name(name) => {
            reader.take();
            if reader.accept("(") { Ok(Expression::Call(name, list(reader)?)) } else { Ok(Expression::Name(name)) }
        }
        Symbol::Sign("(") => {
            reader.take();
            let mut items = list(reader)?;
            Ok(if items.len() == 1 { items.remove(0) } else { Expression::Tuple(items) })
        }
        _ => Err(reader.unexpected("a number, a name, a string or `(`")),
    }
}

/// Expressions up to `)`, which is taken.
fn list(reader: &mut Reader) -> Result<Vec<Expression>, SyntaxError> {
    let mut items = Vec::new();
    loop {
        if reader.accept(")") {
            return Ok(items);
        }
        items.push(expression(reader)?);
        if !reader.accept(",") && !reader.is(")") {
            return Err(reader.unexpected("`,` or `)`"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(text: &str) -> Result<(), String> {
        let code = Code::parse(text, Position { line: 1, column: 1 }).map_err(|error| error.to_string())?;
        let lookup = |name: &str| (name == "tcpi_snd_cwnd").then_some(10.0);
        code.run(&mut Variables::new(), &lookup).map_err(|error| match error {
            CodeError::Failed(line, what) | CodeError::Unknown(line, what) => format!("{line}: {what}"),
        })
    }

    #[test]
    fn assertions_hold_or_not() {
        for text in [
            "assert tcpi_snd_cwnd == 10, tcpi_snd_cwnd",
            "assert 5 <= tcpi_snd_cwnd < 11 and not tcpi_snd_cwnd > 10",
            "assert (tcpi_snd_cwnd & 2) != 0, 'window %d' % tcpi_snd_cwnd  # a remark",
            "x = 5; x += 5\nassert x == tcpi_snd_cwnd == max(3, x)",
            "assert 7 // 2 + 7 % 4 * 2 == 9 or 0; \\\n assert -1 < 0x10 - 1.5",
            "print(tcpi_snd_cwnd, 'a'); assert 1 << 4 | 1 == 17",
            "x = 0 or 7; y = x and 3; assert x == 7 and y == 3 and (0 and 5) == 0",
        ] {
            assert_eq!(run(text), Ok(()), "{text}");
        }
        assert_eq!(
            run("\nassert tcpi_snd_cwnd == 9, 'window %d of %s' % (tcpi_snd_cwnd, 'it')"),
            Err("2: assert tcpi_snd_cwnd == 9: window 10 of it".into())
        );
        assert_eq!(run("assert tcpi_snd_cwnd < 9"), Err("1: assert tcpi_snd_cwnd < 9".into()));
        assert_eq!(run("assert x"), Err("1: `x` has no value".into()));
    }

    #[test]
    fn errors_name_the_place() {
        assert_eq!(
            run("assert tcpi_snd_cwnd =="),
            Err("1:24: expected a number, a name, a string or `(`, not the end".into())
        );
        assert_eq!(run("\n assert 1 = 2"), Err("2:11: expected the end of the statement, not `=`".into()));
        assert_eq!(run("assert 1 ? 2"), Err("1:10: unexpected character `?`".into()));
        assert_eq!(run("x 5"), Err("1:3: expected `=`, `+=`, `-=` or `*=` after a name, not `5`".into()));
    }

    #[test]
    fn depth_and_length_have_limits() {
        assert_eq!(run(&format!("assert {}1{}", "(".repeat(50), ")".repeat(50))), Ok(()));
        for opening in ["(", "not ", "-", "~", "max("] {
            let error = run(&format!("assert {}1", opening.repeat(300))).unwrap_err();
            assert!(error.ends_with("more than 100 expressions within each other"), "{error}");
        }
        assert_eq!(run(&format!("assert 1{}", " + 1".repeat(400))), Ok(()));
        for long in [" + 1".repeat(50_000), "(".repeat(50_000)] {
            let error = run(&format!("x = 1\nassert 1{long}")).unwrap_err();
            assert_eq!(error, "2:1: a statement has at most 1000 words and signs");
        }
    }

    #[test]
    fn other_statements_are_reported() {
        let code = Code::parse("import os\nos.getpid()", Position { line: 1, column: 1 });
        assert_eq!(code.expect("it is skipped").unsupported.as_deref(), Some("code with `.`"));
        let code = Code::parse("while 1\nx = 2", Position { line: 1, column: 1 });
        assert_eq!(code.expect("it is skipped").unsupported.as_deref(), Some("the statement `while` of Python"));
    }
}
