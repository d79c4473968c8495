extension Unicode.Scalar {
    /// Whether it is not seen by itself, or turns the order in which others are read, so that one name looks like another:
    /// Unicode's Bidi_Control, what has no width, line and paragraph separators, and tags. The two joiners stay: emoji and
    /// several scripts are written with them.
    var isDeceptive: Bool {
        switch value {
        case 0xAD, 0x61C, 0x180E, 0x200B, 0x200E...0x200F, 0x2028...0x202E, 0x2060...0x206F, 0xFEFF, 0xFFF9...0xFFFB,
            0xE0000...0xE007F:
            true
        default: false
        }
    }
}
