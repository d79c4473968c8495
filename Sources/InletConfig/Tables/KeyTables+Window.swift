package import InletCore

extension KeyTables {
    /// A route's `window:`. The size has no default here, so that a route without a window shows none.
    package static let window: [KeySpec] =
        KeySpec.span + [
            KeySpec("above", .bytes, "Files of at least this size wait for the window; 1GiB without it.")
        ]
}
