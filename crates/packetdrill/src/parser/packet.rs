//! Packets of a script.

use airpath_core::Ecn;
use airpath_wire::tcp::{EcnCounters, Flags};

use super::{MOST_PAYLOAD, Parser, Stop};
use crate::lexer::Kind;
use crate::position::SyntaxError;
use crate::script::{EcnCheck, Packet, TcpOption};

impl Parser<'_> {
    /// A packet after its direction.
    pub(super) fn packet(&mut self, arrives: bool) -> Result<Packet, Stop> {
        let ecn = self.ecn()?;
        match *self.peek() {
            Kind::Word(word @ ("icmp" | "udp" | "gre" | "GREv0" | "mpls" | "ipv4" | "ipv6" | "encap")) => {
                return Err(Stop::Unsupported(format!("packets of {word}")));
            }
            Kind::Integer(_) if *self.peek_after(1) == Kind::Sign('>') => {
                return Err(Stop::Unsupported("port numbers: several connections at once".into()));
            }
            _ => {}
        }
        let begin = self.at();
        let (flags, accurate, ace) = self.flags()?;
        let (start, length) = self.range()?;
        let mut packet = Packet {
            ecn,
            flags,
            ace,
            accurate,
            start,
            length,
            acknowledgment: 0,
            window: None,
            options: Some(Vec::new()),
        };
        if self.accept_word("ack") {
            packet.acknowledgment = self.integer("the acknowledgment number")?;
            packet.flags |= Flags::ACK;
        }
        let is_misplaced = matches!(self.peek(), Kind::Word(word) if !matches!(*word, "win" | "urg"));
        if is_misplaced && !self.leads() {
            return Err(self.unexpected("`ack`, then `win`, then options in `<`").into());
        }
        if self.accept_word("win") {
            packet.window = Some(self.integer("the window")?);
        } else if arrives {
            return Err(
                SyntaxError::new(begin, "a segment that arrives needs its window: add `win` and a number").into()
            );
        }
        if self.is_word("urg") {
            return Err(Stop::Unsupported("urgent data".into()));
        }
        if self.accept('<') {
            if *self.peek() == Kind::Ellipsis {
                self.take();
                packet.options = None;
                self.expect('>', "after the options")?;
            } else {
                packet.options = Some(self.tcp_options()?);
            }
        }
        Ok(packet)
    }

    /// The ECN field in brackets, if there is one.
    fn ecn(&mut self) -> Result<EcnCheck, Stop> {
        let close = match *self.peek() {
            Kind::Sign('[') => ']',
            Kind::Sign('(') => ')',
            _ => return Ok(EcnCheck::Any),
        };
        self.take();
        let Kind::Word(word) = *self.peek() else { return Err(self.unexpected("an ECN field").into()) };
        let check = match word {
            "noecn" => EcnCheck::Is(Ecn::NotEct),
            "ect0" => EcnCheck::Is(Ecn::Ect0),
            "ect1" => EcnCheck::Is(Ecn::Ect1),
            "ce" => EcnCheck::Is(Ecn::Ce),
            "ect01" => EcnCheck::Capable,
            "tos" | "ttl" | "flowlabel" => return Err(Stop::Unsupported(format!("`{word}` of the IP header"))),
            _ => return Err(self.unexpected("noecn, ect0, ect1, ect01, ce, tos, ttl or flowlabel").into()),
        };
        self.take();
        self.expect(close, "after the ECN field")?;
        Ok(check)
    }

    /// Letters, then perhaps a point for ACK and a digit for the ACE field.
    fn flags(&mut self) -> Result<(Flags, bool, Option<u8>), Stop> {
        let (mut flags, mut accurate, mut ace) = (Flags::default(), false, None);
        let mut any = false;
        if let Kind::Word(letters) = *self.peek() {
            for letter in letters.chars() {
                flags |= match letter {
                    'S' => Flags::SYN,
                    'F' => Flags::FIN,
                    'R' => Flags::RST,
                    'P' => Flags::PSH,
                    'E' => Flags::ECE,
                    'W' => Flags::CWR,
                    '0'..='7' if ace.is_none() => {
                        ace = letter.to_digit(8).map(|digit| digit as u8);
                        Flags::default()
                    }
                    'A' => {
                        accurate = true;
                        Flags::default()
                    }
                    'U' => return Err(Stop::Unsupported("urgent data".into())),
                    _ => return Err(self.unexpected("flags of a segment: S F R P E W A and a point for ACK").into()),
                };
            }
            self.take();
            any = true;
        }
        match *self.peek() {
            Kind::Sign('.') => {
                self.take();
                flags |= Flags::ACK;
            }
            Kind::Sign('-') if !any => {
                self.take();
            }
            // A point and the ACE field.
            Kind::Decimal(_, text) if text.starts_with('.') => {
                let digit = text[1..].parse::<u8>().ok().filter(|digit| *digit < 8 && text.len() == 2);
                ace = Some(digit.ok_or_else(|| self.unexpected("a point and an ACE field from 0 to 7"))?);
                self.take();
                flags |= Flags::ACK;
            }
            _ if any => {}
            _ => return Err(self.unexpected("flags of a segment, such as `S`, `P.` or `.`").into()),
        }
        Ok((flags, accurate, ace))
    }

    /// `start:end(length)`.
    fn range(&mut self) -> Result<(u32, u32), SyntaxError> {
        let begin = self.at();
        let start: u32 = self.integer("the first sequence number")?;
        self.expect(':', "between sequence numbers")?;
        let end: u32 = self.integer("the end of the sequence numbers")?;
        self.expect('(', "before the payload length")?;
        let length: u32 = self.integer("the payload length")?;
        self.expect(')', "after the payload length")?;
        if start.wrapping_add(length) != end {
            let problem = format!("{start}:{end} are {} bytes, not {length}", end.wrapping_sub(start));
            return Err(SyntaxError::new(begin, problem));
        }
        if length > MOST_PAYLOAD {
            return Err(SyntaxError::new(begin, format!("a segment has at most {MOST_PAYLOAD} bytes")));
        }
        Ok((start, length))
    }

    /// Options after `<`, with `>`.
    fn tcp_options(&mut self) -> Result<Vec<TcpOption>, Stop> {
        let mut options = Vec::new();
        loop {
            let Kind::Word(name) = *self.peek() else { return Err(self.unexpected("a TCP option").into()) };
            let known = match name {
                "nop" | "eol" => {
                    self.take();
                    None
                }
                "mss" => {
                    self.take();
                    Some(TcpOption::MaximumSegmentSize(self.integer("a segment size")?))
                }
                "wscale" => {
                    self.take();
                    Some(TcpOption::WindowScale(self.integer("a shift")?))
                }
                "sackOK" => {
                    self.take();
                    Some(TcpOption::SackPermitted)
                }
                "sack" => {
                    self.take();
                    Some(TcpOption::Sack(self.blocks()?))
                }
                "TS" => {
                    self.take();
                    Some(self.timestamps()?)
                }
                "FO" | "FOEXP" => return Err(Stop::Unsupported("TCP Fast Open".into())),
                "md5" => return Err(Stop::Unsupported("MD5 signatures".into())),
                "ECN" => {
                    self.take();
                    Some(self.accurate_ecn()?)
                }
                _ => {
                    return Err(self
                        .unexpected("mss, wscale, sackOK, sack, TS, nop, eol, FO, FOEXP, md5 or ECN")
                        .into());
                }
            };
            options.extend(known);
            if self.accept('>') {
                return Ok(options);
            }
            if !self.accept(',') {
                return Err(self.unexpected("`,` or `>` after a TCP option").into());
            }
        }
    }

    fn blocks(&mut self) -> Result<Vec<(u32, u32)>, SyntaxError> {
        let mut blocks = Vec::new();
        while matches!(self.peek(), Kind::Integer(_)) || blocks.is_empty() {
            let start = self.integer("the start of a SACK block")?;
            self.expect(':', "between the numbers of a SACK block")?;
            blocks.push((start, self.integer("the end of a SACK block")?));
        }
        Ok(blocks)
    }

    fn timestamps(&mut self) -> Result<TcpOption, SyntaxError> {
        if !self.accept_word("val") {
            return Err(self.unexpected("`val`"));
        }
        let value = self.integer("a timestamp")?;
        if !self.accept_word("ecr") {
            return Err(self.unexpected("`ecr`"));
        }
        Ok(TcpOption::Timestamps(value, self.integer("an echoed timestamp")?))
    }

    /// The counters of an AccECN option (RFC 9768 §3.2.3): the first one sets their order.
    fn accurate_ecn(&mut self) -> Result<TcpOption, SyntaxError> {
        let names = if self.is_word("e0b") { ["e0b", "ceb", "e1b"] } else { ["e1b", "ceb", "e0b"] };
        let mut counters = EcnCounters::new(names[0] == "e1b");
        for name in names {
            if !self.accept_word(name) {
                break;
            }
            counters.push(self.integer("a counter of bytes")?);
        }
        Ok(TcpOption::AccurateEcn(counters))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parser::parse;
    use crate::script::Action;

    fn packet(line: &str) -> Packet {
        let script = parse(line).expect("it is valid");
        match script.events.into_iter().next().expect("one event").action {
            Action::Arrival(packet) | Action::Departure(packet) => packet,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn fields_of_a_segment() {
        let packet = packet("+0 < [ce] P. 1:1001(1000) ack 5 win 320 <nop,nop,sack 1:3 7:9,TS val 5 ecr 6>");
        assert_eq!(packet.ecn, EcnCheck::Is(Ecn::Ce));
        assert_eq!(packet.flags, Flags::PSH | Flags::ACK);
        assert_eq!((packet.start, packet.length, packet.acknowledgment, packet.window), (1, 1000, 5, Some(320)));
        let options = [TcpOption::Sack(vec![(1, 3), (7, 9)]), TcpOption::Timestamps(5, 6)];
        assert_eq!(packet.options.as_deref(), Some(&options[..]));
    }

    #[test]
    fn accurate_ecn_has_a_field_of_three_bits() {
        let sent = packet("+0 > [ect01] P.5 1:1001(1000) ack 1 <ECN e1b 1 ceb 0 e0b 1,nop>");
        assert_eq!((sent.ecn, sent.ace), (EcnCheck::Capable, Some(5)));
        let counters = |line: &str, ect1_first, values: &[u32]| {
            let mut counters = EcnCounters::new(ect1_first);
            values.iter().for_each(|value| counters.push(*value));
            assert_eq!(packet(line).options, Some(vec![TcpOption::AccurateEcn(counters)]), "{line}");
        };
        counters("+0 > P.5 1:1001(1000) ack 1 <ECN e1b 1 ceb 0 e0b 1,nop>", true, &[1, 0, 1]);
        counters("+0 > P.5 1:1001(1000) ack 1 <ECN e0b 1 ceb 0>", false, &[1, 0]);
        counters("+0 > P.5 1:1001(1000) ack 1 <nop,ECN>", true, &[]);
        // The notation with the digit before the point.
        let sent = packet("+0 > [ect0] P5. 1:1001(1000) ack 1");
        assert_eq!((sent.flags, sent.ace), (Flags::PSH | Flags::ACK, Some(5)));
        assert!(packet("+0 > SEWA 0:0(0) <...>").accurate);
        assert_eq!(packet("+0 < - 1:11(10) win 5").flags, Flags::default());
    }

    #[test]
    fn errors_name_the_place() {
        let error = |line: &str| parse(line).expect_err("it is invalid").to_string();
        assert_eq!(
            error("+0 < . 1:1(0) ack 1"),
            "1:6: a segment that arrives needs its window: add `win` and a number"
        );
        assert_eq!(
            error("+0 < . 1:1(0) ak 1001 win 5"),
            "1:15: expected `ack`, then `win`, then options in `<`, not `ak`"
        );
        assert_eq!(error("+0 > . 1:1001(10) ack 1"), "1:8: 1:1001 are 1000 bytes, not 10");
        assert_eq!(error("+0 > . 1:1(0) ack 1 <mss 70000>"), "1:26: 70000 is out of range for a segment size");
        assert_eq!(
            error("+0 > . 1:1(0) ack 1 <sacked>"),
            "1:22: expected mss, wscale, sackOK, sack, TS, nop, eol, FO, FOEXP, md5 or ECN, not `sacked`"
        );
        assert_eq!(
            error("+0 > Q. 0:0(0)"),
            "1:6: expected flags of a segment: S F R P E W A and a point for ACK, not `Q`"
        );
    }
}
