package import SystemPackage

/// File names are bytes. `FilePath.string` repairs invalid UTF-8 and then names another file, so paths cross module,
/// database and kernel borders as bytes, and become text for display only.
extension FilePath {
    /// The path's bytes, without the terminating NUL.
    package var bytes: [UInt8] {
        withPlatformString { pointer in
            pointer.withMemoryRebound(to: UInt8.self, capacity: length) {
                Array(UnsafeBufferPointer(start: $0, count: length))
            }
        }
    }

    /// A path made of `bytes`, which end at the first NUL if there is one.
    package init(bytes: some Collection<UInt8>) {
        var terminated = bytes.map { CChar(bitPattern: $0) }
        terminated.append(0)
        self.init(platformString: terminated)
    }

    /// Whether it is `folder`, or below it, name by name. As `starts(with:)`, which makes a view of both paths first: the
    /// names of large folders are asked this by the thousand.
    package func isWithin(_ folder: FilePath) -> Bool {
        let (own, other) = (length, folder.length)
        guard other > 0 else { return true }
        return withPlatformString { path in
            folder.withPlatformString { start in
                guard own >= other, (0..<other).allSatisfy({ path[$0] == start[$0] }) else { return false }
                return own == other || path[other] == Self.separator || start[other - 1] == Self.separator
            }
        }
    }

    private static let separator = CChar(UInt8(ascii: "/"))

    /// The path as a person may see it: control characters, quotes of the terminal and invalid UTF-8 become `\xHH`.
    package var display: String { DisplayText.escape(bytes) }
}

/// Turns bytes of unknown origin into text that is safe on a terminal, in a log line and in a page.
package enum DisplayText {
    /// Escapes C0/C1 controls, DEL, what is not seen or turns the direction of text, and bytes that are not UTF-8 as `\xHH`.
    package static func escape(_ bytes: some Sequence<UInt8>) -> String {
        let all = Array(bytes)
        // Most names; thousands a second of them are logged.
        if all.allSatisfy({ (0x20..<0x7F).contains($0) }) { return String(decoding: all, as: UTF8.self) }
        var result = ""
        var rest = all[...]
        while let first = rest.first {
            let length = sequenceLength(first)
            let head = rest.prefix(length)
            if length > 0, head.count == length, let text = String(validating: head, as: UTF8.self) {
                for scalar in text.unicodeScalars {
                    result += isPrintable(scalar) ? String(scalar) : head.map(hexEscape).joined()
                }
                rest = rest.dropFirst(length)
            } else {
                result += hexEscape(first)
                rest = rest.dropFirst()
            }
        }
        return result
    }

    /// Escapes a text the same way.
    package static func escape(_ text: String) -> String { escape(text.utf8) }

    /// The bytes of an escaped text. One that had `\xHH` in it before it was escaped gives others.
    package static func unescape(_ text: String) -> [UInt8] {
        var bytes: [UInt8] = []
        var rest = Array(text.utf8)[...]
        while let first = rest.first {
            let digits = rest.dropFirst(2).prefix(2)
            if first == UInt8(ascii: "\\"), rest.dropFirst().first == UInt8(ascii: "x"), digits.count == 2,
                let byte = UInt8(String(decoding: digits, as: UTF8.self), radix: 16)
            {
                bytes.append(byte)
                rest = rest.dropFirst(4)
            } else {
                bytes.append(first)
                rest = rest.dropFirst()
            }
        }
        return bytes
    }

    private static func isPrintable(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0..<0x20, 0x7F..<0xA0: false
        default: !scalar.isDeceptive
        }
    }

    private static func sequenceLength(_ lead: UInt8) -> Int {
        switch lead {
        case 0..<0x80: 1
        case 0xC2..<0xE0: 2
        case 0xE0..<0xF0: 3
        case 0xF0..<0xF5: 4
        default: 0
        }
    }

    private static func hexEscape(_ byte: UInt8) -> String {
        let digits = String(byte, radix: 16, uppercase: true)
        return digits.count == 1 ? "\\x0\(digits)" : "\\x\(digits)"
    }
}
