import CLinux
import Glibc
import InletCore
import SystemPackage

/// The messages between this process and its helper (`CHost`): byte strings, each preceded by its length, on a stream
/// socket. An unreadable message ends the conversation.
struct HostMessage: Sendable, Equatable {
    /// Appended at the end, read from the beginning.
    var fields: ArraySlice<[UInt8]> = []

    /// The largest message in bytes, as in `message.c`: a question about some ten thousand files.
    static let most = 16 << 20

    mutating func add(_ bytes: some Sequence<UInt8>) { fields.append(Array(bytes)) }
    mutating func add(_ text: String) { fields.append(Array(text.utf8)) }
    mutating func add(_ number: some BinaryInteger) { add(String(number)) }

    mutating func add(_ words: [String]) {
        add(words.count)
        for word in words { add(word) }
    }

    /// The length of the body in bytes.
    var size: Int { fields.reduce(0) { $0 + 4 + $1.count } }

    /// With it go copies of `files`, at most two.
    func send(to number: CInt, files: [CInt] = []) throws(SystemError) {
        if size > Self.most { throw SystemError(call: ProcessHost.call, code: .fileTooLarge) }
        var bytes = Self.length(size)
        for field in fields { bytes += Self.length(field.count) + field }
        var sent = 0
        while sent < bytes.count {
            let files = sent == 0 ? files : []
            sent += try SystemCall.result("sendmsg") {
                bytes.withUnsafeBytes { all in
                    inlet_send_files(
                        number, all.baseAddress?.advanced(by: sent), all.count - sent, files, CInt(files.count))
                }
            }
        }
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

    mutating func list<Item>(_ item: (inout HostMessage) -> Item?) -> [Item]? {
        guard let count = number(Int.self), count >= 0, count <= fields.count else { return nil }
        var items: [Item] = []
        for _ in 0..<count {
            guard let next = item(&self) else { return nil }
            items.append(next)
        }
        return items
    }
}

/// A request to the helper. `number` names it in its answers.
enum HostRequest {
    /// The commands that may be started, once: a second list is refused.
    case commands([CommandPattern])
    /// Instead of a list: any program may be started.
    case everything
    /// With it go its standard input and its standard error.
    case run(number: UInt64, ChildProcess)
    /// SIGTERM or SIGKILL, to the program and its group.
    case signal(number: UInt64, CInt)
    /// Nobody waits for the program any more. - Parameter endsGroup: whether the rest of its group is ended with it.
    case end(number: UInt64, endsGroup: Bool)
    /// Asks for processes that may write to these files. - Parameter isFresh: scan now, rather than use the last scan.
    case holders(number: UInt64, [ProbedFile], isFresh: Bool)
    /// Asks for the processes that keep a file system mounted. - Parameter device: its `st_dev`.
    case users(number: UInt64, device: UInt64)
    /// Starts the reader of contents. With it goes its end of the conversation.
    case reader(number: UInt64)

    var message: HostMessage {
        var message = HostMessage()
        switch self {
        case .commands(let patterns):
            message.add("commands")
            message.add(ChildVariable.allCases.map(\.rawValue))
            message.add(patterns.count)
            for pattern in patterns {
                message.add(pattern.place)
                message.add(pattern.words)
            }
        case .everything: message.add("everything")
        case .run(let number, let child):
            message.add("run")
            message.add(number)
            message.add(child)
        case .signal(let number, let signal):
            message.add("signal")
            message.add(number)
            message.add(signal)
        case .end(let number, let endsGroup):
            message.add("end")
            message.add(number)
            message.add(endsGroup ? 1 : 0)
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
        case .reader(let number):
            message.add("reader")
            message.add(number)
        }
        return message
    }
}

/// The helper's answer to a request.
enum HostResponse: Sendable, Equatable {
    case started
    case ended(ChildProcess.End)
    case failed(SystemError)
    case holders([OpenWriters.WriterProcess?])
    /// A media type.
    case type(String)
    /// Why there is no media type.
    case unavailable(String)

    static func parse(_ message: HostMessage) -> (number: UInt64, answer: HostResponse)? {
        var fields = message
        guard let number = fields.number(UInt64.self), let answer = HostResponse(&fields) else { return nil }
        return (number, answer)
    }

    private init?(_ fields: inout HostMessage) {
        switch fields.text() {
        case "started": self = .started
        case "ended":
            guard let isExit = fields.text().map({ $0 == "exited" }), let value = fields.number(Int32.self) else {
                return nil
            }
            self = .ended(isExit ? .exited(value) : .signalled(value))
        case "failed":
            guard let call = fields.text(), let path = fields.bytes(), let code = fields.number(CInt.self) else {
                return nil
            }
            let place = path.isEmpty ? nil : FilePath(bytes: path)
            self = .failed(SystemError(call: call, path: place, code: Errno(rawValue: code)))
        case "holders":
            guard let holders = fields.list({ Self.holder(&$0) }) else { return nil }
            self = .holders(holders)
        case "type":
            guard let type = fields.text() else { return nil }
            self = .type(type)
        case "unavailable":
            guard let reason = fields.text() else { return nil }
            self = .unavailable(reason)
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
}

extension HostMessage {
    fileprivate mutating func add(_ file: ProbedFile) {
        add(file.path.bytes)
        add(file.identity.changed)
        add(file.identity.inode)
        add(file.identity.device)
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
        add(child.writesTo?.base.bytes ?? [])
        add(child.writesTo?.folder.bytes ?? [])
    }
}

/// The variables that a confined agent may set for a program, besides the search path, the home and its folder: nothing
/// that would make the dynamic linker load something else.
package enum ChildVariable: String, CaseIterable {
    case language = "LANG"
    case blockUntrusted = "VIPS_BLOCK_UNTRUSTED"
    case event = "INLET_EVENT"
    case state = "INLET_STATE"
    case route = "INLET_ROUTE"
    case key = "INLET_KEY"
    case url = "INLET_URL"
    case destination = "INLET_DESTINATION"
    case volume = "INLET_VOLUME"
    case path = "INLET_PATH"
    case cardState = "INLET_CARD_STATE"
    case text = "INLET_TEXT"
}
