-- When a run was stored, which also dates the simulated ones, and the result of its checks.

ALTER TABLE runs ADD COLUMN stored_unix_ms INTEGER;
ALTER TABLE runs ADD COLUMN verdict TEXT CHECK (verdict IN ('met', 'missed', 'inconclusive'));
