address, phase, holder, fence, attempt, on_lapse, retention, fingerprint, until, gone, form, media, outcome
