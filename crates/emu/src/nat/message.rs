//! Messages to nftables (<linux/netfilter/nf_tables.h>): attributes, expressions, and atomic
//! batches.

const SUBSYSTEM: u16 = 10;
const FAMILY_ANY: u8 = 0;
const FAMILY_INET: u8 = 1;
const BATCH_BEGIN: u16 = 0x10;
const BATCH_END: u16 = 0x11;
const REQUEST: u16 = 0x1;
const ACKNOWLEDGE: u16 = 0x4;
const CREATE: u16 = 0x400;
const APPEND: u16 = 0x800;
const DUMP: u16 = 0x300;
const NESTED: u16 = 0x8000;
const HEADER: usize = 16;

/// The request to list everything of the kind `kind` of the families of IPv4, IPv6 and both
/// together.
pub fn listing(kind: u16) -> Vec<u8> {
    let mut bytes = Vec::new();
    push(&mut bytes, Header { kind: SUBSYSTEM << 8 | kind, flags: REQUEST | DUMP, ..Header::default() }, &[]);
    bytes
}

/// The header before the attributes of a message: `nlmsghdr` and `nfgenmsg`, without the fields
/// that are always zero here.
#[derive(Default)]
struct Header {
    kind: u16,
    flags: u16,
    sequence: u32,
    family: u8,
    resource: u16,
}

fn push(bytes: &mut Vec<u8>, header: Header, attributes: &[u8]) {
    let length = (HEADER + 4 + attributes.len()) as u32;
    bytes.extend(length.to_ne_bytes());
    bytes.extend(header.kind.to_ne_bytes());
    bytes.extend(header.flags.to_ne_bytes());
    bytes.extend(header.sequence.to_ne_bytes());
    bytes.extend(0u32.to_ne_bytes());
    bytes.extend([header.family, 0]);
    bytes.extend(header.resource.to_be_bytes());
    bytes.extend(attributes);
}

/// Changes that are applied atomically.
#[derive(Debug)]
pub struct Batch {
    bytes: Vec<u8>,
    messages: u32,
}

impl Batch {
    /// An empty batch.
    pub fn new() -> Self {
        let mut batch = Self { bytes: Vec::new(), messages: 0 };
        batch.mark(BATCH_BEGIN);
        batch
    }

    /// Adds a message of the kind `kind` for the inet family (IPv4 and IPv6).
    pub fn add(&mut self, kind: u16, attributes: Attributes) {
        self.messages += 1;
        let header = Header {
            kind: SUBSYSTEM << 8 | kind,
            flags: REQUEST | ACKNOWLEDGE | CREATE | APPEND,
            sequence: self.messages,
            family: FAMILY_INET,
            resource: 0,
        };
        push(&mut self.bytes, header, &attributes.0);
    }

    /// The bytes to send, and the number of responses to expect.
    pub fn finish(mut self) -> (Vec<u8>, u32) {
        self.mark(BATCH_END);
        (self.bytes, self.messages)
    }

    fn mark(&mut self, kind: u16) {
        let header = Header { kind, flags: REQUEST, sequence: self.messages, family: FAMILY_ANY, resource: SUBSYSTEM };
        push(&mut self.bytes, header, &[]);
    }
}

/// Consecutive attributes, each with its length and type.
#[derive(Clone, Debug, Default)]
pub struct Attributes(Vec<u8>);

impl Attributes {
    /// None.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a text.
    pub fn text(self, kind: u16, text: &str) -> Self {
        self.bytes(kind, &[text.as_bytes(), &[0]].concat())
    }

    /// Adds a number.
    pub fn number(self, kind: u16, number: u32) -> Self {
        self.bytes(kind, &number.to_be_bytes())
    }

    /// Adds a nested attribute.
    pub fn nested(self, kind: u16, attributes: Self) -> Self {
        self.bytes(kind | NESTED, &attributes.0)
    }

    /// Adds bytes.
    pub fn bytes(mut self, kind: u16, bytes: &[u8]) -> Self {
        self.0.extend((4 + bytes.len() as u16).to_ne_bytes());
        self.0.extend(kind.to_ne_bytes());
        self.0.extend(bytes);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }
}

/// The expressions of a rule, in order.
#[derive(Debug, Default)]
pub struct Expressions(Attributes);

/// The register through which expressions pass values.
const REGISTER: u32 = 1;

impl Expressions {
    /// None.
    pub fn new() -> Self {
        Self::default()
    }

    /// Matches packets of this network protocol.
    pub fn protocol_is(self, protocol: u8) -> Self {
        const KEY_PROTOCOL: u32 = 15;
        self.add("meta", Attributes::new().number(1, REGISTER).number(2, KEY_PROTOCOL)).equals(&[protocol])
    }

    /// Matches packets with these bytes at this offset of their network header.
    pub fn header_has(self, offset: u32, bytes: &[u8]) -> Self {
        const NETWORK_HEADER: u32 = 1;
        let place = Attributes::new().number(1, REGISTER).number(2, NETWORK_HEADER);
        self.add("payload", place.number(3, offset).number(4, bytes.len() as u32)).equals(bytes)
    }

    /// Replaces the source address by that of the outgoing interface.
    pub fn masquerade(self) -> Self {
        self.add("masq", Attributes::new())
    }

    /// As attributes of a rule.
    pub fn attributes(self) -> Attributes {
        self.0
    }

    fn equals(self, bytes: &[u8]) -> Self {
        const EQUAL: u32 = 0;
        let value = Attributes::new().bytes(1, bytes);
        self.add("cmp", Attributes::new().number(1, REGISTER).number(2, EQUAL).nested(3, value))
    }

    fn add(self, name: &str, data: Attributes) -> Self {
        Self(self.0.nested(1, Attributes::new().text(1, name).nested(2, data)))
    }
}
