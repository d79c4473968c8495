import Glibc
import InletCore
import SystemPackage

/// The messages between a confined agent and its process host: byte strings, each preceded by its length, on a stream
/// socket. Both sides are of the same build; an unreadable message ends the conversation.
struct HostMessage: Sendable, Equatable {
    /// Appended at the end, read from the beginning.
    var fields: ArraySlice<[UInt8]> = []

    /// The largest message in bytes: a notice's body with all of its unit's files is far below.
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

    /// The length of the body in bytes.
    var size: Int { fields.reduce(0) { $0 + 4 + $1.count } }

    func send(to number: CInt) throws(SystemError) {
        if size > Self.most { throw SystemError(call: ProcessHost.call, code: .fileTooLarge) }
        var bytes = Self.length(size)
        for field in fields { bytes += Self.length(field.count) + field }
        try Descriptor.write(bytes, to: number, nil)
    }

    /// The next message; nil when the other side has ended or sends something unreadable. Blocks.
    static func receive(from number: CInt) -> HostMessage? {
        guard let head = read(4, from: number) else { return nil }
        let count = value(head[...])
        guard count <= most, let body = read(count, from: number) else { return nil }
        return HostMessage(body: body)
    }

    init() {}

    /// - Returns: nil where a field is longer than the message.
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

/// Reads a message's fields in their order; nil for a missing field, and for text where a number belongs.
extension HostMessage {
    mutating func bytes() -> [UInt8]? { fields.popFirst() }
    mutating func text() -> String? { bytes().map { String(decoding: $0, as: UTF8.self) } }
    mutating func number<Number: FixedWidthInteger>(_: Number.Type = Number.self) -> Number? {
        text().flatMap { Number($0) }
    }
    mutating func time() -> Duration? { number(Int64.self).map { .milliseconds($0) } }
    mutating func texts() -> [String]? { list { $0.text() } }

    mutating func list<Item>(_ item: (inout HostMessage) -> Item?) -> [Item]? {
        guard let count = number(Int.self), count >= 0, count <= fields.count else { return nil }
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

/// A request from the agent.
enum HostRequest: Sendable {
    /// The commands that may be started, once: a second list is refused.
    case commands([CommandPattern])
    case run(UInt64, ChildProcess)
    case cancel(UInt64)
    /// Asks for processes that may write to these files. - Parameter isFresh: scan now, rather than use the last scan.
    case holders(UInt64, [ProbedFile], isFresh: Bool)
    /// Asks for the processes that keep a file system mounted. - Parameter device: its `st_dev`.
    case users(UInt64, device: UInt64)

    var message: HostMessage {
        var message = HostMessage()
        switch self {
        case .commands(let patterns):
            message.add("commands")
            message.add(patterns.count)
            for pattern in patterns {
                message.add(pattern.place)
                message.add(pattern.words)
            }
        case .run(let number, let child):
            message.add("run")
            message.add(number)
            message.add(child)
        case .cancel(let number):
            message.add("cancel")
            message.add(number)
        case .holders(let number, let files, let isFresh):
            message.add("holders")
            message.add(number)
            message.add(isFresh ? 1 : 0)
            message.add(files.count)
            for file in files { message.add(file) }
        case .users(let number, let device):
            message.add("users")
            message.add(number)
            message.add(device)
        }
        return message
    }

    init?(_ message: HostMessage) {
        var fields = message
        switch fields.text() {
        case "commands":
            let patterns = fields.list { fields in
                fields.text().flatMap { place in fields.texts().map { CommandPattern($0, place: place) } }
            }
            guard let patterns else { return nil }
            self = .commands(patterns)
        case "run":
            guard let number = fields.number(UInt64.self), let child = ChildProcess(&fields) else { return nil }
            self = .run(number, child)
        case "cancel":
            guard let number = fields.number(UInt64.self) else { return nil }
            self = .cancel(number)
        case "holders":
            guard let number = fields.number(UInt64.self), let isFresh = fields.number(Int.self),
                let files = fields.list({ ProbedFile(&$0) })
            else { return nil }
            self = .holders(number, files, isFresh: isFresh == 1)
        case "users":
            guard let number = fields.number(UInt64.self), let device = fields.number(UInt64.self) else { return nil }
            self = .users(number, device: device)
        default: return nil
        }
    }
}

/// The host's answer to a request.
enum HostResponse: Sendable {
    case ended(ChildProcess.Outcome)
    case failed(SystemError)
    case holders([OpenWriters.WriterProcess?])

    func message(to number: UInt64) -> HostMessage {
        var message = HostMessage()
        message.add(number)
        switch self {
        case .ended(let outcome):
            message.add("ended")
            message.add(outcome.end)
            message.add(outcome.errors)
        case .failed(let error):
            message.add("failed")
            message.add(error)
        case .holders(let holders):
            message.add("holders")
            message.add(holders.count)
            for holder in holders {
                message.add(holder?.process ?? 0)
                message.add(holder?.name ?? "")
                message.add(holder?.isMapping == true ? 1 : 0)
            }
        }
        return message
    }

    static func parse(_ message: HostMessage) -> (number: UInt64, answer: HostResponse)? {
        var fields = message
        guard let number = fields.number(UInt64.self), let kind = fields.text() else { return nil }
        switch kind {
        case "ended":
            guard let end = ChildProcess.End(&fields), let errors = fields.bytes() else { return nil }
            return (number, .ended(ChildProcess.Outcome(end: end, errors: errors)))
        case "failed": return fields.error().map { (number, .failed($0)) }
        case "holders": return fields.list { Self.holder(&$0) }.map { (number, .holders($0)) }
        default: return nil
        }
    }

    private static func holder(_ fields: inout HostMessage) -> OpenWriters.WriterProcess?? {
        guard let process = fields.number(Int32.self), let name = fields.text(), let isMapping = fields.number(Int.self)
        else { return nil }
        return .some(
            process == 0 ? nil : OpenWriters.WriterProcess(process: process, name: name, isMapping: isMapping == 1))
    }
}

/// A file whose writers are wanted.
struct ProbedFile: Sendable, Equatable {
    var identity: FileIdentity
    var path: FilePath

    init(_ identity: FileIdentity, _ path: FilePath) { (self.identity, self.path) = (identity, path) }

    init?(_ fields: inout HostMessage) {
        guard let path = fields.bytes(), let size = fields.number(Int64.self), let modified = fields.number(Int64.self),
            let changed = fields.number(Int64.self), let inode = fields.number(UInt64.self),
            let device = fields.number(UInt64.self)
        else { return nil }
        self.path = FilePath(bytes: path)
        identity = FileIdentity(size: size, modified: modified, changed: changed, inode: inode, device: device)
    }
}

extension HostMessage {
    fileprivate mutating func add(_ words: [String]) {
        add(words.count)
        for word in words { add(word) }
    }

    fileprivate mutating func add(_ file: ProbedFile) {
        add(file.path.bytes)
        add(file.identity.size)
        add(file.identity.modified)
        add(file.identity.changed)
        add(file.identity.inode)
        add(file.identity.device)
    }

    fileprivate mutating func add(_ end: ChildProcess.End) {
        let (kind, value): (String, Int32) =
            switch end {
            case .exited(let code): ("exited", code)
            case .signalled(let signal): ("signalled", signal)
            case .timedOut: ("timedOut", 0)
            case .stuck: ("stuck", 0)
            case .cancelled: ("cancelled", 0)
            }
        add(kind)
        add(value)
    }

    fileprivate mutating func add(_ child: ChildProcess) {
        add(child.arguments)
        add(child.environment.count)
        for (name, value) in child.environment {
            add(name)
            add(value)
        }
        add(child.niceness)
        add(child.largestFile ?? -1)
        add(child.yieldsMemory ? 1 : 0)
        add(child.leavesNobody ? 1 : 0)
        add(child.input)
        for time in [child.timeout, child.grace, child.patience] { add(time) }
    }
}

extension ChildProcess.End {
    fileprivate init?(_ fields: inout HostMessage) {
        guard let kind = fields.text(), let value = fields.number(Int32.self) else { return nil }
        switch kind {
        case "exited": self = .exited(value)
        case "signalled": self = .signalled(value)
        case "timedOut": self = .timedOut
        case "stuck": self = .stuck
        case "cancelled": self = .cancelled
        default: return nil
        }
    }
}

extension ChildProcess {
    fileprivate init?(_ fields: inout HostMessage) {
        guard let arguments = fields.texts(),
            let environment = fields.list({ fields in
                fields.text().flatMap { name in fields.bytes().map { (name: name, value: $0) } }
            }), let niceness = fields.number(Int32.self), let largest = fields.number(Int64.self),
            let yields = fields.number(Int.self), let leaves = fields.number(Int.self), let input = fields.bytes(),
            let timeout = fields.time(), let grace = fields.time(), let patience = fields.time()
        else { return nil }
        self.init(
            arguments, environment: environment, input: input, timeout: timeout, grace: grace, patience: patience)
        (self.niceness, largestFile) = (niceness, largest < 0 ? nil : largest)
        (yieldsMemory, leavesNobody) = (yields == 1, leaves == 1)
    }
}
