internal import CMagic
internal import InletCore
package import InletLinux
internal import Synchronization

/// A file's media type by its content, from libmagic (file(1)). The library is loaded at the first question.
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

    private static let library = Mutex<MagicLibrary?>(nil)

    /// The media type of the file's content, in lower case and without parameters; `application/octet-stream` if
    /// libmagic does not know it. Blocks.
    ///
    /// - Throws: `SystemError` when the file cannot be read, `Unavailable`.
    package static func read(from source: SourceFile) throws -> String {
        try of(try source.content(of: Int(min(Int64(headBytes), source.opened.size))))
    }

    /// The media type of content that begins with `head`. A missing library is looked for again the next time, because
    /// somebody may install it.
    static func of(_ head: [UInt8]) throws(Unavailable) -> String {
        try library.withLock { library throws(Unavailable) in
            if library == nil { library = try MagicLibrary() }
            return try library?.type(of: head) ?? "application/octet-stream"
        }
    }

    /// Whether types can be determined at all; loads the library.
    package static func check() throws(Unavailable) { _ = try of([]) }
}

/// libmagic with its database. One thread at a time.
private final class MagicLibrary {
    private let handle: UnsafeMutablePointer<inlet_magic>

    init() throws(ContentType.Unavailable) {
        var why: UnsafePointer<CChar>?
        guard let opened = inlet_magic_open(&why) else {
            throw ContentType.Unavailable(reason: why.map { String(cString: $0) } ?? "libmagic cannot be loaded")
        }
        handle = opened
    }

    func type(of head: [UInt8]) throws(ContentType.Unavailable) -> String {
        // The pointer of an empty array may be nil.
        let answer = (head + [0]).withUnsafeBytes { bytes in
            bytes.baseAddress.flatMap { inlet_magic_type(handle, $0, head.count) }.map { String(cString: $0) }
        }
        guard let answer else {
            let said = inlet_magic_error(handle).map { String(cString: $0) }
            throw ContentType.Unavailable(reason: said ?? "libmagic gave no answer")
        }
        return Self.plain(answer)
    }

    /// Without parameters; an invalid media type is unknown.
    private static func plain(_ answer: String) -> String {
        let type = answer.prefix { $0 != ";" && !$0.isWhitespace }.lowercased()
        return type.contains("/") ? type : "application/octet-stream"
    }

    deinit { inlet_magic_close(handle) }
}
