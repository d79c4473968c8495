internal import InletCore

/// A `multipart/form-data` body (RFC 7578) around one file: what goes before the file's bytes, and what goes after.
struct FormData: Sendable, Equatable {
    let boundary: String
    let header: [UInt8]
    let footer: [UInt8]

    var contentType: String { "multipart/form-data; boundary=\(boundary)" }

    /// - Parameters:
    ///   - fields: names are our own; values may hold anything but the boundary.
    ///   - fileName: bytes as the file system has them.
    ///   - boundary: a fresh random one. The file's bytes are not looked at: 128 random bits do not occur in them.
    init(
        fields: [(name: String, value: String)], fileField: String, fileName: [UInt8], mediaType: String,
        boundary: String = FormData.randomBoundary()
    ) {
        var boundary = boundary
        while fields.contains(where: { $0.value.contains(boundary) }) { boundary = Self.randomBoundary() }
        var header: [UInt8] = []
        for (name, value) in fields {
            header += "--\(boundary)\r\nContent-Disposition: form-data; name=\"\(name)\"\r\n\r\n".utf8
            header += value.utf8
            header += "\r\n".utf8
        }
        header += "--\(boundary)\r\nContent-Disposition: form-data; name=\"\(fileField)\"; filename=\"".utf8
        header += Self.escaped(fileName)
        header += "\"\r\nContent-Type: \(mediaType)\r\n\r\n".utf8
        self.boundary = boundary
        self.header = header
        footer = Array("\r\n--\(boundary)--\r\n".utf8)
    }

    /// The name as browsers write it (HTML, "multipart/form-data encoding algorithm"): quotes, CR and LF as `%HH`. What
    /// could end the line or is not UTF-8 goes the same way; nothing else changes.
    static func escaped(_ name: [UInt8]) -> [UInt8] {
        let isText = String(validating: name, as: UTF8.self) != nil
        return name.flatMap { byte -> [UInt8] in
            let isPlain = byte != UInt8(ascii: "\"") && byte >= 0x20 && byte != 0x7F && (isText || byte < 0x80)
            guard !isPlain else { return [byte] }
            let digits = String(byte, radix: 16, uppercase: true)
            return Array(((byte < 16 ? "%0" : "%") + digits).utf8)
        }
    }

    static func randomBoundary() -> String {
        let words = (0..<2).map { _ in String(UInt64.random(in: .min ... .max), radix: 36) }
        return "inlet-form-" + words.joined()
    }
}
