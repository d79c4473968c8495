/// A credential. It prints, reflects and encodes as `***`; the one way to its text is `reveal()`, which review can grep for.
package struct Secret: Sendable, Hashable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    private let text: String

    package init(_ text: String) { self.text = text }

    /// The credential itself; call it only where it goes on the wire.
    package func reveal() -> String { text }

    package var isEmpty: Bool { text.isEmpty }
    package var description: String { "***" }
    package var debugDescription: String { "***" }
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}
