import Glibc
import InletCore
import SystemPackage

/// What a confined agent and its process host say to each other: byte strings, each behind its length, on a stream socket.
/// Either side is of the same build; what cannot be read ends the conversation.
struct HostMessage: Sendable, Equatable {
    var fields: [[UInt8]] = []

    /// Of one message: a notice's body with all of its unit's files is far below.
    static let most = 64 << 20

    mutating func add(_ bytes: some Sequence<UInt8>) { fields.append(Array(bytes)) }
    mutating func add(_ text: String) { fields.append(Array(text.utf8)) }
    mutating func add(_ number: some BinaryInteger) { add(String(number)) }
    mutating func add(_ time: Duration) { add(Int64(min(time / .milliseconds(1), 9e15))) }

    mutating func add(_ error: SystemError) {
        add(error.call)
        add(error.path?.bytes ?? [])
        add(error.code.rawValue)
    }

    /// Of its body, in bytes.
    var size: Int { fields.reduce(0) { $0 + 4 + $1.count } }

    func send(to number: CInt) throws(SystemError) {
        if size > Self.most { throw SystemError(call: ProcessHost.call, code: .fileTooLarge) }
        var bytes = Self.length(size)
        for field in fields { bytes += Self.length(field.count) + field }
        let result: Result<Void, SystemError> = bytes.withUnsafeBytes { bytes in
            do throws(SystemError) {
                return .success(try Descriptor.write(bytes, to: number, nil))
            } catch {
                return .failure(error)
            }
        }
        try result.get()
    }

    /// The next message; nil when the other side has ended, or says what cannot be understood. Blocks.
    static func receive(from number: CInt) -> HostMessage? {
        guard let head = read(4, from: number) else { return nil }
        let count = value(head[...])
        guard count <= most, let body = read(count, from: number) else { return nil }
        return HostMessage(body: body)
    }

    init() {}

    /// - Returns: nil where a field is longer than what came.
    init?(body: [UInt8]) {
        var rest = body[...]
        while !rest.isEmpty {
            guard rest.count >= 4 else { return nil }
            let length = Self.value(rest.prefix(4))
            rest = rest.dropFirst(4)
            guard rest.count >= length else { return nil }
            fields.append(Array(rest.prefix(length)))
            rest = rest.dropFirst(length)
        }
    }

    private static func length(_ count: Int) -> [UInt8] {
        withUnsafeBytes(of: UInt32(truncatingIfNeeded: count).littleEndian) { Array($0) }
    }

    private static func value(_ bytes: ArraySlice<UInt8>) -> Int {
        bytes.reversed().reduce(0) { $0 << 8 | Int($1) }
    }

    private static func read(_ count: Int, from number: CInt) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: count)
        var filled = 0
        while filled < count {
            let part = bytes.withUnsafeMutableBytes { room in
                Glibc.read(number, room.baseAddress?.advanced(by: filled), count - filled)
            }
            if part > 0 { filled += part } else if part == 0 || errno != EINTR { return nil }
        }
        return bytes
    }
}

/// Takes a message's fields in their order; nil for what is not there or no number.
struct HostFields {
    private var rest: ArraySlice<[UInt8]>

    init(_ message: HostMessage) { rest = message.fields[...] }

    mutating func bytes() -> [UInt8]? { rest.popFirst() }
    mutating func text() -> String? { bytes().map { String(decoding: $0, as: UTF8.self) } }
    mutating func number<Number: FixedWidthInteger>(_: Number.Type = Number.self) -> Number? {
        text().flatMap { Number($0) }
    }
    mutating func time() -> Duration? { number(Int64.self).map { .milliseconds($0) } }
    mutating func texts() -> [String]? { list { $0.text() } }

    mutating func list<Item>(_ item: (inout HostFields) -> Item?) -> [Item]? {
        guard let count = number(Int.self), count >= 0, count <= rest.count else { return nil }
        var items: [Item] = []
        for _ in 0..<count {
            guard let next = item(&self) else { return nil }
            items.append(next)
        }
        return items
    }

    mutating func error() -> SystemError? {
        guard let call = text(), let path = bytes(), let code = number(CInt.self) else { return nil }
        return SystemError(call: call, path: path.isEmpty ? nil : FilePath(bytes: path), code: Errno(rawValue: code))
    }
}
