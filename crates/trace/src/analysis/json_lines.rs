//! The lines of JSON of connections that have ended.

use std::ops::Range;

use super::table::Object;
use airpath_observe::flows::FlowNumber;

/// Lines in one text, whose memory is reused: allocations for each line would be contended between
/// the two threads.
#[derive(Debug, Default)]
pub struct JsonLines {
    text: String,
    /// The positions of connection numbers in it.
    numbers: Vec<Range<usize>>,
    lines: Vec<Line>,
}

/// A line.
#[derive(Debug)]
pub struct Line {
    /// The number of the connection in the text.
    pub flow: FlowNumber,
    /// The frame at which the line was emitted.
    pub frame: u64,
    text: Range<usize>,
    numbers: Range<usize>,
}

impl JsonLines {
    /// Adds the line of a connection: an object to which `write` adds the members.
    pub fn add(&mut self, flow: FlowNumber, frame: u64, write: impl FnOnce(Object) -> Object) {
        let starts = (self.text.len(), self.numbers.len());
        let object = Object::after(std::mem::take(&mut self.text), std::mem::take(&mut self.numbers));
        (self.text, self.numbers) = write(object).end_with_numbers();
        let (text, numbers) = (starts.0..self.text.len(), starts.1..self.numbers.len());
        self.lines.push(Line { flow, frame, text, numbers });
    }

    /// Iterates over the lines.
    pub fn iter(&self) -> impl Iterator<Item = &Line> {
        self.lines.iter()
    }

    /// Returns the text of a line with the connection's number in the capture. Where that differs
    /// from the number in the text, the result is written to `buffer`.
    pub fn text<'a>(&'a self, line: &Line, number: FlowNumber, buffer: &'a mut String) -> &'a str {
        if number == line.flow {
            return &self.text[line.text.clone()];
        }
        buffer.clear();
        let number = number.0.to_string();
        let mut from = line.text.start;
        for place in &self.numbers[line.numbers.clone()] {
            buffer.push_str(&self.text[from..place.start]);
            buffer.push_str(&number);
            from = place.end;
        }
        buffer.push_str(&self.text[from..line.text.end]);
        buffer
    }

    /// Removes all lines.
    pub fn clear(&mut self) {
        self.text.clear();
        self.numbers.clear();
        self.lines.clear();
    }
}
