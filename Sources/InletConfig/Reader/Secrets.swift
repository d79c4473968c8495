import InletCore
import SystemPackage

/// Fills in `${env:NAME}` and `${file:PATH}`; `$${` stands for a literal `${`.
///
/// What is filled in is not looked at again, and never becomes part of an error.
struct Interpolation {
    /// Why a text could not be filled in; `offset` counts the text's UTF-8 bytes.
    struct Failure: Error, Equatable {
        var offset: Int
        var message: String
    }

    /// Content of `${file:}` beyond this is refused.
    static let maximumFileBytes = 64 << 10

    let environment: [String: String]
    let paths: PathResolution

    /// - Returns: the whole text, and what of it has been filled in.
    func fill(_ text: String) throws(Failure) -> (text: String, parts: [String]) {
        guard Self.isNeeded(in: text) else { return (text, []) }
        var parts: [String] = []
        var result = ""
        var rest = Substring(text)
        while let dollar = rest.firstIndex(of: "$") {
            result += rest[..<dollar]
            rest = rest[dollar...]
            if rest.hasPrefix("$${") {
                result += "${"
                rest = rest.dropFirst(3)
            } else if rest.hasPrefix("${") {
                let offset = text.utf8.distance(from: text.startIndex, to: dollar)
                guard let close = rest.firstIndex(of: "}") else {
                    throw Failure(offset: offset, message: "'${' is never closed; write $${ for a literal ${")
                }
                let part = try value(of: rest[rest.index(dollar, offsetBy: 2)..<close], at: offset)
                parts.append(part)
                result += part
                rest = rest[rest.index(after: close)...]
            } else {
                result += "$"
                rest = rest.dropFirst()
            }
        }
        return (result + rest, parts)
    }

    /// Whether `text` holds anything that `fill` would change or complain about.
    static func isNeeded(in text: String) -> Bool { text.contains("${") }

    private func value(of reference: Substring, at offset: Int) throws(Failure) -> String {
        if reference.hasPrefix("env:") {
            let name = String(reference.dropFirst(4))
            if let value = environment[name] { return value }
            let shown = DisplayText.escape(name)
            throw Failure(offset: offset, message: "the environment variable '\(shown)' is not set")
        }
        if reference.hasPrefix("file:") { return try content(of: String(reference.dropFirst(5)), at: offset) }
        throw Failure(
            offset: offset, message: "'${' begins ${env:NAME} or ${file:PATH}; write $${ for a literal ${")
    }

    private func content(of name: String, at offset: Int) throws(Failure) -> String {
        guard let path = paths.resolve(name) else {
            throw Failure(offset: offset, message: "${file:} needs a path; ~ needs HOME to be set")
        }
        var bytes: [UInt8]
        do {
            bytes = try SmallFile.read(path, limit: Self.maximumFileBytes).bytes
        } catch {
            throw Failure(offset: offset, message: "cannot read \(path.display): \(error)")
        }
        if bytes.last == UInt8(ascii: "\n") { bytes.removeLast() }
        if bytes.last == UInt8(ascii: "\r") { bytes.removeLast() }
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw Failure(offset: offset, message: "\(path.display) is not UTF-8 text")
        }
        return text
    }
}

/// A file read whole, up to a limit.
struct SmallFile {
    var bytes: [UInt8]
    /// The permission bits of its mode.
    var permissions: FilePermissions

    /// Why a file could not be read, in words.
    struct Failure: Error, CustomStringConvertible {
        var description: String
    }

    static func read(_ path: FilePath, limit: Int) throws(Failure) -> SmallFile {
        do {
            // Not blocking, because opening a FIFO would wait for its writer.
            let file = try FileDescriptor.open(path, .readOnly, options: [.nonBlocking, .closeOnExec])
            return try file.closeAfter {
                let stat = try file.stat()
                guard stat.type != .directory else { throw Errno.isDirectory }
                let bytes = try bytes(of: file, limit: limit)
                return SmallFile(bytes: bytes, permissions: stat.permissions)
            }
        } catch let failure as Failure {
            throw failure
        } catch {
            throw Failure(description: "\(error)")
        }
    }

    private static func bytes(of file: FileDescriptor, limit: Int) throws -> [UInt8] {
        var bytes: [UInt8] = []
        let chunk = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 1)
        defer { chunk.deallocate() }
        while true {
            let count = try file.read(into: chunk)
            if count == 0 { return bytes }
            bytes += chunk.prefix(count)
            if bytes.count > limit { throw Failure(description: "it is larger than \(ByteText.format(Int64(limit)))") }
        }
    }
}
