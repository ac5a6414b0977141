//! What a unit holds: nothing, zeros, a slot of bytes (`payload`), or bytes that are lost (`sums`).

/// What a unit's bytes are, as one number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Content(pub(super) u32);

impl Content {
    /// It was programmed without bytes, or not at all.
    pub(crate) const NONE: Self = Self(0);
    /// All of it is zero.
    pub(super) const ZEROS: Self = Self(1);
    /// It was moved after its bytes were lost.
    pub(super) const LOST: Self = Self(u32::MAX);
    pub(super) const FIRST: u32 = 2;

    pub(super) fn slot(self) -> Option<u32> {
        self.0.checked_sub(Self::FIRST).filter(|_| self != Self::LOST)
    }
}
