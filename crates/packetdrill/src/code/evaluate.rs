//! Evaluation of expressions.

use std::fmt;

use super::{Binary, Comparison, Expression, Unary};

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Number(f64),
    Text(String),
    Tuple(Vec<Self>),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => f.write_str(text),
            Self::Tuple(items) => {
                let items: Vec<_> = items.iter().map(ToString::to_string).collect();
                write!(f, "({})", items.join(", "))
            }
        }
    }
}

impl Value {
    pub const fn number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            _ => None,
        }
    }

    pub fn is_true(&self) -> bool {
        match self {
            Self::Number(number) => *number != 0.0,
            Self::Text(text) => !text.is_empty(),
            Self::Tuple(items) => !items.is_empty(),
        }
    }
}

impl Expression {
    /// Adds the names in it to `names`.
    pub(super) fn names<'a>(&'a self, names: &mut Vec<&'a str>) {
        match self {
            Self::Number(_) | Self::Text(_) => {}
            Self::Name(name) => names.push(name),
            Self::Tuple(items) | Self::Call(_, items) | Self::And(items) | Self::Or(items) => {
                items.iter().for_each(|item| item.names(names));
            }
            Self::Unary(_, operand) => operand.names(names),
            Self::Binary(_, left, right) => {
                left.names(names);
                right.names(names);
            }
            Self::Comparison(first, others) => {
                first.names(names);
                others.iter().for_each(|(_, other)| other.names(names));
            }
        }
    }

    /// Its value, with the values of names from `lookup`. An error has its description.
    pub(super) fn evaluate(&self, lookup: &dyn Fn(&str) -> Option<f64>) -> Result<Value, String> {
        let truth = |is: bool| Value::Number(f64::from(u8::from(is)));
        Ok(match self {
            Self::Number(number) => Value::Number(*number),
            Self::Text(text) => Value::Text(text.clone()),
            Self::Name(name) => Value::Number(match name.as_str() {
                "True" => 1.0,
                "False" => 0.0,
                _ => lookup(name).ok_or_else(|| format!("`{name}` has no value"))?,
            }),
            Self::Tuple(items) => Value::Tuple(values(items, lookup)?),
            Self::Call(name, items) => {
                let numbers: Option<Vec<f64>> = values(items, lookup)?.iter().map(Value::number).collect();
                let numbers = numbers.filter(|numbers| !numbers.is_empty());
                let result = match (name.as_str(), numbers) {
                    ("min", Some(numbers)) => numbers.into_iter().reduce(f64::min),
                    ("max", Some(numbers)) => numbers.into_iter().reduce(f64::max),
                    ("abs", Some(numbers)) if numbers.len() == 1 => Some(numbers[0].abs()),
                    ("int", Some(numbers)) if numbers.len() == 1 => Some(numbers[0].trunc()),
                    _ => None,
                };
                Value::Number(result.ok_or_else(|| format!("the call of `{name}` has no value"))?)
            }
            Self::Unary(Unary::Not, operand) => truth(!operand.evaluate(lookup)?.is_true()),
            Self::Unary(operator, operand) => {
                let number = number(operand, lookup)?;
                Value::Number(if matches!(operator, Unary::Minus) { -number } else { !(number as i64) as f64 })
            }
            Self::Binary(Binary::Modulo, left, right) => match left.evaluate(lookup)? {
                Value::Text(text) => Value::Text(format_text(&text, right.evaluate(lookup)?)),
                left => arithmetic(Binary::Modulo, left.number().unwrap_or(f64::NAN), number(right, lookup)?)?,
            },
            Self::Binary(operator, left, right) => {
                arithmetic(*operator, number(left, lookup)?, number(right, lookup)?)?
            }
            Self::Comparison(first, others) => {
                let mut left = number(first, lookup)?;
                for (comparison, other) in others {
                    let right = number(other, lookup)?;
                    if !comparison.holds(left, right) {
                        return Ok(truth(false));
                    }
                    left = right;
                }
                truth(true)
            }
            // The operand that decides, as in Python.
            Self::And(items) => decisive(items, lookup, false)?,
            Self::Or(items) => decisive(items, lookup, true)?,
        })
    }
}

/// The first value that is `wanted`, or the last one.
fn decisive(items: &[Expression], lookup: &dyn Fn(&str) -> Option<f64>, wanted: bool) -> Result<Value, String> {
    let (last, others) = items.split_last().expect("two operands");
    for item in others {
        let value = item.evaluate(lookup)?;
        if value.is_true() == wanted {
            return Ok(value);
        }
    }
    last.evaluate(lookup)
}

fn values(items: &[Expression], lookup: &dyn Fn(&str) -> Option<f64>) -> Result<Vec<Value>, String> {
    items.iter().map(|item| item.evaluate(lookup)).collect()
}

fn number(expression: &Expression, lookup: &dyn Fn(&str) -> Option<f64>) -> Result<f64, String> {
    let value = expression.evaluate(lookup)?;
    value.number().ok_or_else(|| format!("`{value}` is not a number"))
}

fn arithmetic(operator: Binary, left: f64, right: f64) -> Result<Value, String> {
    let (a, b) = (left as i64, right as i64);
    if matches!(operator, Binary::Divide | Binary::FloorDivide | Binary::Modulo) && right == 0.0 {
        return Err("division by zero".into());
    }
    Ok(Value::Number(match operator {
        Binary::Add => left + right,
        Binary::Subtract => left - right,
        Binary::Multiply => left * right,
        Binary::Divide => left / right,
        Binary::FloorDivide => (left / right).floor(),
        Binary::Modulo => left - right * (left / right).floor(),
        Binary::BitAnd => (a & b) as f64,
        Binary::BitOr => (a | b) as f64,
        Binary::ShiftLeft => a.checked_shl(u32::try_from(b).unwrap_or(u32::MAX)).unwrap_or(0) as f64,
        Binary::ShiftRight => a.checked_shr(u32::try_from(b).unwrap_or(u32::MAX)).unwrap_or(0) as f64,
    }))
}

impl Comparison {
    fn holds(self, left: f64, right: f64) -> bool {
        match self {
            Self::Equal => left == right,
            Self::NotEqual => left != right,
            Self::Less => left < right,
            Self::LessOrEqual => left <= right,
            Self::Greater => left > right,
            Self::GreaterOrEqual => left >= right,
        }
    }
}

/// Replaces each `%d`, `%s` and the like by the next value.
fn format_text(text: &str, value: Value) -> String {
    let mut values = match value {
        Value::Tuple(items) => items.into_iter(),
        single => vec![single].into_iter(),
    };
    let mut parts = text.split('%');
    let mut formatted = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|c: char| c.is_ascii_alphabetic()).map_or(part.len(), |at| at + 1);
        formatted += &values.next().map_or_else(|| format!("%{}", &part[..end]), |value| value.to_string());
        formatted += &part[end..];
    }
    formatted
}
