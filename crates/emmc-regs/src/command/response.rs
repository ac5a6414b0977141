use super::FastIo;
use crate::ocr::Ocr;
use crate::r1::R1;

/// The forms of an answer on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ResponseKind {
    /// No answer.
    None,
    /// The card status.
    R1,
    /// The card status, then busy on the data line.
    R1b,
    /// CID or CSD.
    R2,
    /// OCR.
    R3,
    /// A register of an I/O card, of MMC.
    R4,
    /// An interrupt, of MMC.
    R5,
    /// The address that an SD card chose.
    R6,
    /// What an SD card says to CMD8.
    R7,
}

/// An answer on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Response {
    /// No answer.
    None,
    /// The card status.
    R1(R1),
    /// The card status, then busy on the data line.
    R1b(R1),
    /// CID or CSD, bits 127:120 in the first byte.
    R2([u8; 16]),
    /// OCR.
    R3(Ocr),
    /// A register of an I/O card: `write` is here the standard's status bit, 1 for success.
    R4(FastIo),
    /// An interrupt.
    R5 {
        /// The address of the card.
        rca: u16,
        /// What the card adds.
        data: u16,
    },
    /// The address that an SD card chose.
    R6 {
        /// The address.
        rca: u16,
        /// Bits 23, 22, 19 and 12:0 of the card status.
        status: u16,
    },
    /// What an SD card says to CMD8.
    R7 {
        /// The accepted voltage, four bits; 1 is 2.7 V to 3.6 V.
        voltage: u8,
        /// The pattern sent, back.
        pattern: u8,
    },
}

impl Response {
    /// Reads an answer from the four words that Linux hands out, the highest bits in the first.
    pub fn decode(kind: ResponseKind, words: [u32; 4]) -> Self {
        let [first, ..] = words;
        match kind {
            ResponseKind::None => Self::None,
            ResponseKind::R1 => Self::R1(R1(first)),
            ResponseKind::R1b => Self::R1b(R1(first)),
            ResponseKind::R2 => {
                let mut register = [0; 16];
                for (bytes, word) in register.chunks_exact_mut(4).zip(words) {
                    bytes.copy_from_slice(&word.to_be_bytes());
                }
                Self::R2(register)
            }
            ResponseKind::R3 => Self::R3(Ocr(first)),
            ResponseKind::R4 => Self::R4(FastIo::decode(first)),
            ResponseKind::R5 => Self::R5 { rca: (first >> 16) as u16, data: first as u16 },
            ResponseKind::R6 => Self::R6 { rca: (first >> 16) as u16, status: first as u16 },
            ResponseKind::R7 => Self::R7 { voltage: (first >> 8 & 0xf) as u8, pattern: first as u8 },
        }
    }

    /// The four words that Linux hands out, the highest bits in the first; unused words are 0.
    pub fn words(&self) -> [u32; 4] {
        let first = match *self {
            Self::None => 0,
            Self::R1(r1) | Self::R1b(r1) => r1.0,
            Self::R2(register) => {
                let mut words = [0; 4];
                for (word, bytes) in words.iter_mut().zip(register.chunks_exact(4)) {
                    *word = bytes.iter().fold(0, |word, byte| word << 8 | u32::from(*byte));
                }
                return words;
            }
            Self::R3(ocr) => ocr.0,
            Self::R4(io) => io.encode(),
            Self::R5 { rca, data } => u32::from(rca) << 16 | u32::from(data),
            Self::R6 { rca, status } => u32::from(rca) << 16 | u32::from(status),
            Self::R7 { voltage, pattern } => u32::from(voltage & 0xf) << 8 | u32::from(pattern),
        };
        [first, 0, 0, 0]
    }

    /// The response to SD's CMD3: the new address and a part of the status.
    pub fn r6(rca: u16, r1: R1) -> Self {
        let errors = r1.0 >> 8 & 0xc000 | r1.0 >> 6 & 0x2000;
        Self::R6 { rca, status: (errors | r1.0 & 0x1fff) as u16 }
    }

    /// Which form the answer has.
    pub fn kind(&self) -> ResponseKind {
        match self {
            Self::None => ResponseKind::None,
            Self::R1(_) => ResponseKind::R1,
            Self::R1b(_) => ResponseKind::R1b,
            Self::R2(_) => ResponseKind::R2,
            Self::R3(_) => ResponseKind::R3,
            Self::R4(_) => ResponseKind::R4,
            Self::R5 { .. } => ResponseKind::R5,
            Self::R6 { .. } => ResponseKind::R6,
            Self::R7 { .. } => ResponseKind::R7,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cid::Cid;
    use crate::r1::State;

    #[test]
    fn a_register_is_sent_in_four_words() {
        let cid = Cid::parse_hex("1501004d384731474303dc0db061506f").unwrap();
        let words = [0x1501_004d, 0x3847_3147, 0x4303_dc0d, 0xb061_506f];
        assert_eq!(Response::R2(cid.0).words(), words);
        assert_eq!(Response::decode(ResponseKind::R2, words), Response::R2(cid.0));
    }

    #[test]
    fn every_response_round_trips() {
        let io = FastIo { rca: 1, write: true, register: 0x7f, data: 0xa5 };
        for response in [
            Response::None,
            Response::R1(R1(0x900)),
            Response::R1b(R1(0x0080_0e00)),
            Response::R2([0xa5; 16]),
            Response::R3(Ocr(0xc0ff_8080)),
            Response::R4(io),
            Response::R5 { rca: 0xffff, data: 1 },
            Response::R6 { rca: 0xaaaa, status: 0x0520 },
            Response::R7 { voltage: 1, pattern: 0xaa },
        ] {
            assert_eq!(Response::decode(response.kind(), response.words()), response);
        }
        assert_eq!(Response::R7 { voltage: 1, pattern: 0xaa }.words()[0], 0x1aa);
    }

    #[test]
    fn r6_keeps_the_errors_of_r1() {
        let r1 = R1::in_state(State::Ident).with(R1::COM_CRC_ERROR).with(R1::ILLEGAL_COMMAND).with(R1::ERROR);
        assert_eq!(Response::r6(0x1234, r1).words()[0], 0x1234_e400);
        let r1 = R1::in_state(State::Stby).with(R1::APP_CMD).with(R1::READY_FOR_DATA);
        assert_eq!(Response::r6(0xaaaa, r1).words()[0], 0xaaaa_0720);
    }
}
