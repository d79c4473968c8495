/// One event of a server-sent stream.
struct StreamEvent: Sendable, Equatable {
    /// `message` where the server names none.
    var name = "message"
    var data: [UInt8] = []
    /// The last id that the server has named, in this event or before it.
    var id: String?
}

/// Reads server-sent events (WHATWG HTML, section 9.2.6) from pieces of any size. Bounded: of a line or an event that is longer
/// than `most` bytes nothing is kept.
struct EventStreamParser {
    private static let most = 4 << 20

    private var line: [UInt8] = []
    private var isLineTooLong = false
    private var event = StreamEvent()
    private var hasData = false
    private var isEventTooLong = false
    private var endedWithReturn = false

    /// The events that end in the piece.
    mutating func take(_ piece: some Sequence<UInt8>) -> [StreamEvent] {
        var events: [StreamEvent] = []
        for byte in piece {
            let isSecondOfPair = endedWithReturn && byte == UInt8(ascii: "\n")
            endedWithReturn = byte == UInt8(ascii: "\r")
            if isSecondOfPair { continue }
            guard byte == UInt8(ascii: "\n") || byte == UInt8(ascii: "\r") else {
                if line.count < Self.most { line.append(byte) } else { isLineTooLong = true }
                continue
            }
            if let ended = endLine() { events.append(ended) }
        }
        return events
    }

    private mutating func endLine() -> StreamEvent? {
        defer { (line, isLineTooLong) = ([], false) }
        if line.isEmpty { return endEvent() }
        if isLineTooLong {
            isEventTooLong = true
            return nil
        }
        let name = line.prefix { $0 != UInt8(ascii: ":") }
        var value = line[name.endIndex...].dropFirst()
        if value.first == UInt8(ascii: " ") { value = value.dropFirst() }
        switch String(decoding: name, as: UTF8.self) {
        case "event": event.name = String(decoding: value, as: UTF8.self)
        case "id": event.id = String(decoding: value, as: UTF8.self)
        case "data":
            if hasData { event.data.append(UInt8(ascii: "\n")) }
            hasData = true
            if event.data.count + value.count > Self.most { isEventTooLong = true } else { event.data += value }
        default: break
        }
        return nil
    }

    private mutating func endEvent() -> StreamEvent? {
        let ended = hasData && !isEventTooLong ? event : nil
        (event, hasData, isEventTooLong) = (StreamEvent(id: event.id), false, false)
        return ended
    }
}
