//! Power and reset of a served card, which no front can control.

use std::sync::atomic::Ordering;

use super::Served;
use crate::block::BlockError;

impl Served {
    /// Cuts the card's power: current operations are interrupted, volatile data is lost.
    ///
    /// Errors: store.
    pub fn cut_power(&self) -> Result<(), BlockError> {
        self.power_cuts.fetch_add(1, Ordering::Relaxed);
        self.with_card(|card, now| card.power_off(now))
    }

    /// Powers the card again; a host with commands must initialise it again.
    ///
    /// Errors: an armed power cut came again, worn out, store.
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
