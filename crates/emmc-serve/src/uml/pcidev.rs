//! PCI over virtio: messages of a machine's bus to a device, and interrupts back.
//!
//! Source: Linux, `include/uapi/linux/virtio_pcidev.h`; `arch/um/drivers/virt-pci.c` for what it sends: a write of
//! configuration space always has eight bytes of data, of which the size says how many count.

/// The length of a message without its data. Unit: bytes.
const HEADER_BYTES: usize = 16;
/// The longest access. Unit: bytes.
const ACCESS_MAX: usize = 4096;
/// The longest message. Unit: bytes.
pub(super) const MESSAGE_MAX: usize = HEADER_BYTES + ACCESS_MAX;
/// The length of an interrupt's message. Unit: bytes.
pub(super) const INTERRUPT_BYTES: usize = HEADER_BYTES + 4;

mod op {
    pub(super) const READ_CONFIG: u8 = 1;
    pub(super) const WRITE_CONFIG: u8 = 2;
    pub(super) const READ: u8 = 3;
    pub(super) const WRITE: u8 = 4;
    pub(super) const FILL: u8 = 5;
    pub(super) const MSI: u8 = 7;
}

/// Part of the device that is accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Space {
    Config,
    Bar(u8),
}

/// What software does there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act<'a> {
    /// Reads this many bytes.
    Read(usize),
    /// Writes these bytes.
    Write(&'a [u8]),
    /// Writes one byte this many times.
    Fill(u8, usize),
}

/// An access of software.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Access<'a> {
    pub(super) space: Space,
    pub(super) offset: usize,
    pub(super) act: Act<'a>,
}

impl<'a> Access<'a> {
    /// None: not a message, too long, or with too few bytes.
    pub(super) fn parse(message: &'a [u8]) -> Option<Self> {
        let (header, data) = message.split_first_chunk::<HEADER_BYTES>()?;
        let [op, bar, _, _, a, b, c, d, offset @ ..] = *header;
        let size = usize::try_from(u32::from_le_bytes([a, b, c, d])).ok().filter(|size| *size <= ACCESS_MAX)?;
        let offset = usize::try_from(u64::from_le_bytes(offset)).ok()?;
        let (space, act) = match op {
            op::READ_CONFIG => (Space::Config, Act::Read(size)),
            op::WRITE_CONFIG => (Space::Config, Act::Write(data.get(..size)?)),
            op::READ => (Space::Bar(bar), Act::Read(size)),
            op::WRITE => (Space::Bar(bar), Act::Write(data.get(..size)?)),
            op::FILL => (Space::Bar(bar), Act::Fill(*data.first()?, size)),
            _ => return None,
        };
        Some(Self { space, offset, act })
    }
}

/// The message of an MSI.
pub(super) fn msi(address: u64, data: u32) -> [u8; INTERRUPT_BYTES] {
    let mut message = [0; INTERRUPT_BYTES];
    message[0] = op::MSI;
    message[4..8].copy_from_slice(&4u32.to_le_bytes());
    message[8..16].copy_from_slice(&address.to_le_bytes());
    message[16..].copy_from_slice(&data.to_le_bytes());
    message
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A message without its data.
    pub(in crate::uml) fn header(op: u8, bar: u8, size: u32, offset: u64) -> Vec<u8> {
        [&[op, bar, 0, 0][..], &size.to_le_bytes(), &offset.to_le_bytes()].concat()
    }

    #[test]
    fn messages_are_accesses() {
        let data = [1, 2, 3, 4, 5, 6, 7, 8];
        let message = |op, size| [header(op, 0, size, 0x30), data.to_vec()].concat();
        let parse = |op, size| Access::parse(&message(op, size)).map(|access| (access.space, access.offset));
        assert_eq!(parse(op::READ_CONFIG, 4), Some((Space::Config, 0x30)));
        assert_eq!(Access::parse(&message(op::WRITE_CONFIG, 2)).unwrap().act, Act::Write(&[1, 2]));
        assert_eq!(Access::parse(&message(op::WRITE, 8)).unwrap().act, Act::Write(&data));
        assert_eq!(Access::parse(&message(op::READ, 8)).unwrap().act, Act::Read(8));
        assert_eq!(Access::parse(&message(op::FILL, 100)).unwrap().act, Act::Fill(1, 100));
        for (op, size) in [(0, 1), (6, 1), (7, 4), (op::WRITE, 9), (op::READ, 4097), (op::FILL, u32::MAX)] {
            assert_eq!(parse(op, size), None, "{op} {size}");
        }
        for bytes in 0..HEADER_BYTES {
            assert_eq!(Access::parse(&message(op::READ, 1)[..bytes]), None);
        }
    }

    #[test]
    fn an_interrupt_is_what_the_kernel_reads() {
        assert_eq!(msi(0x1234, 7)[..], [header(7, 0, 4, 0x1234), vec![7, 0, 0, 0]].concat());
    }
}
