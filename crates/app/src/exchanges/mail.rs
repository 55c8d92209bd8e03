//! Reading mail by IMAP and POP3, and sending it by SMTP: the commands of a session, over a
//! connection without TLS.
//!
//! Sizes are those of the commands and responses below. Kinds of exchanges: `session` (greeting,
//! authentication, end), `mailbox` (its state, and a list of its messages), `envelope` (sender and
//! recipient) and `message` (a message itself).

use airpath_core::{Bytes, Span};
use serde::{Deserialize, Serialize};

use super::terminal::SettingError;
use super::{Exchange, Script};

/// A protocol of mail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// IMAP4rev1 (RFC 3501): list the messages, then fetch each.
    Imap,
    /// POP3 (RFC 1939): list the messages, then retrieve and delete each.
    Pop3,
    /// SMTP (RFC 5321): send messages.
    Smtp,
}

impl Protocol {
    /// The name under which it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Imap => "imap",
            Self::Pop3 => "pop3",
            Self::Smtp => "smtp",
        }
    }
}

/// A session of mail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mail {
    /// The protocol.
    pub protocol: Protocol,
    /// Number of messages.
    #[serde(default = "one")]
    pub messages: u32,
    /// Bytes of a message, with its header.
    #[serde(default = "twenty_kilobytes")]
    pub message: Bytes,
    /// Whether commands are sent without waiting for the responses to those before, where the
    /// protocol permits it (RFC 3501 §5.5, RFC 2449 §6.6, RFC 2920).
    #[serde(default)]
    pub pipelining: bool,
    /// Time of the server for each command.
    #[serde(default)]
    pub processing: Span,
}

const fn one() -> u32 {
    1
}

const fn twenty_kilobytes() -> Bytes {
    Bytes::new(20_000)
}

/// Bytes of the envelope of a message in a list of IMAP (RFC 3501 §7.4.2): an assumption.
const ENVELOPE: u32 = 300;

/// The kind of the exchanges that carry a message.
pub const MESSAGE: &str = "message";

impl Mail {
    /// Most bytes of a message.
    const MOST_BYTES: u64 = 1 << 30;
    /// Most messages.
    const MOST_MESSAGES: u32 = 100_000;

    /// Checks the ranges.
    ///
    /// # Errors
    /// The first setting that is out of range.
    pub fn check(&self) -> Result<(), SettingError> {
        let wrong = |field, message: &'static str| Err(SettingError { field, message: message.into() });
        if !(1..=Self::MOST_MESSAGES).contains(&self.messages) {
            return wrong("messages", "a session has 1 to 100,000 messages");
        }
        if !(1..=Self::MOST_BYTES).contains(&self.message.get()) {
            return wrong("message", "a message has 1 byte to 1 GiB");
        }
        if self.processing > Span::from_secs(24 * 3600) {
            return wrong("processing", "it is at most one day");
        }
        Ok(())
    }

    /// The session.
    pub fn script(&self) -> Script {
        let mut session = Session { mail: *self, script: Script::default(), tag: 0 };
        match self.protocol {
            Protocol::Imap => session.imap(),
            Protocol::Pop3 => session.pop3(),
            Protocol::Smtp => session.smtp(),
        }
        session.script
    }
}

/// A script that is being written.
struct Session {
    mail: Mail,
    script: Script,
    /// Number of the last command of IMAP.
    tag: u32,
}

impl Session {
    fn add(&mut self, kind: &str, waits: bool, request: u32, response: u32) {
        let processing = self.mail.processing;
        self.script.add(kind, Exchange { kind: 0, waits, pause: Span::ZERO, request, response, processing });
    }

    /// A command that awaits all responses before it.
    fn command(&mut self, kind: &str, request: &str, response: &str) {
        self.add(kind, true, request.len() as u32, response.len() as u32);
    }

    fn imap_command(&mut self, kind: &str, waits: bool, command: &str, response: u32, done: &str) {
        self.tag += 1;
        let request = format!("A{:03} {command}\r\n", self.tag);
        let done = format!("A{:03} OK {done}\r\n", self.tag);
        self.add(kind, waits, request.len() as u32, response + done.len() as u32);
    }

    fn imap(&mut self) {
        let Mail { messages, message, pipelining, .. } = self.mail;
        self.command("session", "", "* OK [CAPABILITY IMAP4rev1 IDLE AUTH=PLAIN] mail.example.org ready\r\n");
        self.imap_command("session", true, "LOGIN mobile password", 0, "LOGIN completed");
        let state = format!(
            "* FLAGS (\\Answered \\Flagged \\Deleted \\Seen \\Draft)\r\n* {messages} EXISTS\r\n* 0 RECENT\r\n\
             * OK [UNSEEN 1] first unseen\r\n* OK [UIDVALIDITY 1000000000] valid\r\n* OK [UIDNEXT 2000] next\r\n\
             * OK [PERMANENTFLAGS (\\Deleted \\Seen \\*)] permitted\r\n"
        );
        self.imap_command("mailbox", true, "SELECT INBOX", state.len() as u32, "[READ-WRITE] SELECT completed");
        let list = "FETCH 1:* (UID FLAGS INTERNALDATE RFC822.SIZE ENVELOPE)";
        self.imap_command("mailbox", true, list, ENVELOPE * messages, "FETCH completed");
        for number in 1..=messages {
            let head = format!("* {number} FETCH (BODY[] {{{}}}\r\n)\r\n", message.get());
            let waits = !pipelining || number == 1;
            let fetch = format!("FETCH {number} BODY[]");
            self.imap_command(MESSAGE, waits, &fetch, head.len() as u32 + message.get() as u32, "FETCH completed");
        }
        self.imap_command("session", true, "LOGOUT", "* BYE logging out\r\n".len() as u32, "LOGOUT completed");
    }

    fn pop3(&mut self) {
        let Mail { messages, message, pipelining, .. } = self.mail;
        self.command("session", "", "+OK mail.example.org ready\r\n");
        self.command("session", "USER mobile\r\n", "+OK\r\n");
        self.command("session", "PASS password\r\n", "+OK logged in\r\n");
        let octets = message.get();
        self.command("mailbox", "STAT\r\n", &format!("+OK {messages} {}\r\n", octets * u64::from(messages)));
        let list: String = (1..=messages).map(|number| format!("{number} {octets}\r\n")).collect();
        self.command("mailbox", "LIST\r\n", &format!("+OK\r\n{list}.\r\n"));
        for number in 1..=messages {
            let waits = !pipelining || number == 1;
            let head = format!("+OK {octets} octets\r\n.\r\n").len() as u32;
            let retrieve = format!("RETR {number}\r\n");
            self.add(MESSAGE, waits, retrieve.len() as u32, head + octets as u32);
            let delete = format!("DELE {number}\r\n");
            self.add("mailbox", !pipelining, delete.len() as u32, "+OK\r\n".len() as u32);
        }
        self.command("session", "QUIT\r\n", "+OK bye\r\n");
    }

    fn smtp(&mut self) {
        let Mail { messages, message, pipelining, .. } = self.mail;
        self.command("session", "", "220 mail.example.org ESMTP\r\n");
        let extensions = "250-mail.example.org\r\n250-PIPELINING\r\n250-SIZE 52428800\r\n250 8BITMIME\r\n";
        self.command("session", "EHLO mobile.example.org\r\n", extensions);
        for number in 1..=messages {
            let sender = format!("MAIL FROM:<mobile@example.org> SIZE={}\r\n", message.get());
            // The end of a message may begin the next group of commands (RFC 2920 §3.1).
            self.add("envelope", !pipelining || number == 1, sender.len() as u32, "250 2.1.0 Ok\r\n".len() as u32);
            let recipient = "RCPT TO:<user@example.com>\r\n";
            self.add("envelope", !pipelining, recipient.len() as u32, "250 2.1.5 Ok\r\n".len() as u32);
            let go_ahead = "354 End data with <CR><LF>.<CR><LF>\r\n";
            self.add("envelope", !pipelining, "DATA\r\n".len() as u32, go_ahead.len() as u32);
            // DATA ends a group of commands (RFC 2920 §3.1): the message waits for its response.
            let end = "\r\n.\r\n".len() as u32;
            self.add(MESSAGE, true, message.get() as u32 + end, "250 2.0.0 Ok: queued\r\n".len() as u32);
        }
        self.command("session", "QUIT\r\n", "221 2.0.0 Bye\r\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mail(protocol: Protocol, pipelining: bool) -> Mail {
        Mail { protocol, messages: 3, message: Bytes::new(5000), pipelining, processing: Span::ZERO }
    }

    /// Exchanges that await all responses before them: the round trips of the session.
    fn round_trips(mail: Mail) -> usize {
        mail.script().exchanges.iter().filter(|exchange| exchange.waits).count()
    }

    #[test]
    fn round_trips_are_those_of_the_commands() {
        assert_eq!(round_trips(mail(Protocol::Imap, false)), 4 + 3 + 1);
        assert_eq!(round_trips(mail(Protocol::Imap, true)), 4 + 1 + 1);
        assert_eq!(round_trips(mail(Protocol::Pop3, false)), 5 + 2 * 3 + 1);
        assert_eq!(round_trips(mail(Protocol::Pop3, true)), 5 + 1 + 1);
        assert_eq!(round_trips(mail(Protocol::Smtp, false)), 2 + 4 * 3 + 1);
        assert_eq!(round_trips(mail(Protocol::Smtp, true)), 2 + 1 + 3 + 1);
    }

    #[test]
    fn the_server_speaks_first_and_messages_are_carried_once() {
        for protocol in [Protocol::Imap, Protocol::Pop3, Protocol::Smtp] {
            let script = mail(protocol, true).script();
            assert_eq!(script.exchanges[0].request, 0);
            assert!(script.exchanges[1..].iter().all(|exchange| exchange.request > 0));
            let kind = script.kinds.iter().position(|kind| kind == MESSAGE).expect("messages");
            let bytes = |exchange: &Exchange| match protocol {
                Protocol::Smtp => exchange.request,
                _ => exchange.response,
            };
            let messages: Vec<u32> =
                script.exchanges.iter().filter(|exchange| exchange.kind == kind).map(bytes).collect();
            assert_eq!(messages.len(), 3);
            assert!(messages.iter().all(|bytes| (5000..5100).contains(bytes)), "{messages:?}");
        }
    }
}
