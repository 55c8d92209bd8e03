//! The lines of JSON of connections that have ended.

use std::ops::Range;

use super::table::Object;
use airpath_observe::flows::FlowNumber;

/// Lines one after the other in one text, which can be used again: two threads that take turns had better not ask for memory with each line.
#[derive(Debug, Default)]
pub struct Lines {
    text: String,
    /// Where numbers of connections stand in it.
    numbers: Vec<Range<usize>>,
    lines: Vec<Line>,
}

/// One of them.
#[derive(Debug)]
pub struct Line {
    /// The connection, by the number that stands in the text.
    pub flow: FlowNumber,
    /// The frame at which it was told.
    pub frame: u64,
    text: Range<usize>,
    numbers: Range<usize>,
}

impl Lines {
    /// Adds the line of a connection, an object that `write` gives its members.
    pub fn add(&mut self, flow: FlowNumber, frame: u64, write: impl FnOnce(Object) -> Object) {
        let starts = (self.text.len(), self.numbers.len());
        let object = Object::after(std::mem::take(&mut self.text), std::mem::take(&mut self.numbers));
        (self.text, self.numbers) = write(object).end_with_numbers();
        let (text, numbers) = (starts.0..self.text.len(), starts.1..self.numbers.len());
        self.lines.push(Line { flow, frame, text, numbers });
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = &Line> {
        self.lines.iter()
    }

    /// The text of one of these lines with the number that the connection has in the capture. `space` is for the text, if that is another.
    pub fn text<'a>(&'a self, line: &Line, number: FlowNumber, space: &'a mut String) -> &'a str {
        if number == line.flow {
            return &self.text[line.text.clone()];
        }
        space.clear();
        let number = number.0.to_string();
        let mut from = line.text.start;
        for place in &self.numbers[line.numbers.clone()] {
            space.push_str(&self.text[from..place.start]);
            space.push_str(&number);
            from = place.end;
        }
        space.push_str(&self.text[from..line.text.end]);
        space
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.text.clear();
        self.numbers.clear();
        self.lines.clear();
    }
}
