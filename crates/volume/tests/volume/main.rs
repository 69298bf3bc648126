//! Whole volumes: what providers publish comes out of them, and what must hold for any volume does.

mod closed_loop;
mod properties;
mod published;
mod series;
