internal import CMagic
internal import InletCore
package import InletLinux
internal import Synchronization

/// What a file is by its content, as libmagic (file(1)) sees it. The library is loaded when this is first asked.
package enum ContentType {
    /// There is no libmagic, or it has no database.
    package struct Unavailable: Error, Sendable, Equatable, CustomStringConvertible {
        package var reason: String

        package var description: String {
            "what files hold cannot be seen: \(reason); install libmagic (apt install libmagic1, dnf install file-libs)"
        }
    }

    /// Of larger files the first so many bytes are looked at: what tells a type is nearly always in them.
    static let headBytes = 256 << 10

    private static let library = Mutex<MagicLibrary?>(nil)

    /// The media type of the file's content, in lower case and without parameters; `application/octet-stream` when it is of no
    /// kind that libmagic knows. Blocks.
    ///
    /// - Throws: `SystemError` when the file cannot be read, `Unavailable`.
    package static func read(from source: SourceFile) throws -> String {
        try of(try source.content(of: Int(min(Int64(headBytes), source.opened.size))))
    }

    /// The media type of what begins with `head`. A library that is missing is looked for again the next time: somebody may
    /// install it.
    static func of(_ head: [UInt8]) throws(Unavailable) -> String {
        try library.withLock { library throws(Unavailable) in
            if library == nil { library = try MagicLibrary() }
            return try library?.type(of: head) ?? "application/octet-stream"
        }
    }

    /// Whether types can be told at all; loads the library.
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
        // The pointer of an empty array may be none.
        let answer = (head + [0]).withUnsafeBytes { bytes in
            bytes.baseAddress.flatMap { inlet_magic_type(handle, $0, head.count) }.map { String(cString: $0) }
        }
        guard let answer else {
            let said = inlet_magic_error(handle).map { String(cString: $0) }
            throw ContentType.Unavailable(reason: said ?? "libmagic gave no answer")
        }
        return Self.plain(answer)
    }

    /// Without parameters; what is no media type is unknown.
    private static func plain(_ answer: String) -> String {
        let type = answer.prefix { $0 != ";" && !$0.isWhitespace }.lowercased()
        return type.contains("/") ? type : "application/octet-stream"
    }

    deinit { inlet_magic_close(handle) }
}
