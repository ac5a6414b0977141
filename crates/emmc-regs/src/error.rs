/// Why something is not a register.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A character that is no hexadecimal digit.
    #[error("{register} has {found:?} at offset {offset}; expected a hexadecimal digit")]
    NotHex {
        /// The register that was read.
        register: &'static str,
        /// Bytes before the character.
        offset: usize,
        /// The character.
        found: char,
    },
    /// Too few or too many digits.
    #[error("{register} has {found} hexadecimal digits; expected {expected}")]
    DigitCount {
        /// The register that was read.
        register: &'static str,
        /// Digits that the register has.
        expected: usize,
        /// Digits that were given.
        found: usize,
    },
}
