//! Power and reset of a served card, which no front of it can bring about.

use super::Served;
use crate::block::BlockError;

impl Served {
    /// Cuts the card's power: what is under way is interrupted, what is only in memory is lost.
    ///
    /// Errors: store.
    pub fn cut_power(&self) -> Result<(), BlockError> {
        self.with_card(|card, now| card.power_off(now))
    }

    /// Gives the card power again; it must be initialised anew by a host that speaks commands.
    ///
    /// Errors: power lost again at an armed cut, worn out, store.
    pub fn restore_power(&self) -> Result<(), BlockError> {
        let ready = self.with_card(|card, now| card.power_on(now))?;
        ready.map(|_| ()).map_err(|error| super::access::block_error(&error))
    }

    /// RST_n is asserted and released; obeyed where RST_n_FUNCTION says so.
    ///
    /// Errors: as [`Served::restore_power`].
    pub fn hardware_reset(&self) -> Result<(), BlockError> {
        let reset = self.with_card(|card, now| card.hardware_reset(now))?;
        reset.map_err(|error| super::access::block_error(&error))
    }
}
