internal import InletCore
package import InletLinux

/// A file's media type by its content, from libmagic (file(1)), which a confined process of its own asks.
package enum ContentType {
    /// libmagic is missing, or has no database.
    package struct Unavailable: Error, Sendable, Equatable, CustomStringConvertible {
        package var reason: String

        package var description: String {
            "install libmagic (apt install libmagic1, dnf install file-libs); media types need it: \(reason)"
        }
    }

    /// Of larger files only the first bytes are read: they nearly always decide the type.
    static let headBytes = 256 << 10

    /// The media type of the file's content, in lower case and without parameters; `application/octet-stream` if
    /// libmagic does not know it. Blocks.
    ///
    /// - Throws: `SystemError` when the file cannot be read or libmagic fails on it, `Unavailable`.
    package static func read(from source: SourceFile) throws -> String {
        try of(try source.content(of: Int(min(Int64(headBytes), source.opened.size))))
    }

    /// The media type of content that begins with `head`.
    static func of(_ head: [UInt8]) throws -> String {
        switch try ContentReader.type(of: head) {
        case .type(let answer): return plain(answer)
        case .unavailable(let reason): throw Unavailable(reason: reason)
        }
    }

    /// Without parameters; an invalid media type is unknown.
    private static func plain(_ answer: String) -> String {
        let type = answer.prefix { $0 != ";" && !$0.isWhitespace }.lowercased()
        return type.contains("/") ? type : "application/octet-stream"
    }

    /// Whether types can be determined at all; asks for one.
    package static func check() throws { _ = try of([]) }
}
