internal import HTTPTypes
internal import Hummingbird
internal import NIOCore

extension Request {
    /// More of what a client sends than it may is thrown away up to here, so that it can read why before the connection ends.
    private static let mostDrained = 4 << 20

    /// Whether there is anything behind the head.
    private var announcesBody: Bool {
        headers[.transferEncoding] != nil || headers[.contentLength].map { $0 != "0" } ?? false
    }

    /// The answer to a request of which nothing behind the head was read. A connection on which more was announced than comes
    /// at once ends after it: whoever was refused could go on for ever, and have its place for so long.
    func refuse(_ response: Response, _ deadline: ConnectionDeadline) async -> Reply {
        guard announcesBody else { return Reply(response: response) }
        // Who asks first whether he may send has not sent it (RFC 9110, 10.1.1).
        // Whatever ends it, what was not read ends the connection.
        let isRead = headers[.expect] == nil ? (try? await drain(deadline)) ?? false : false
        return Reply(response: response, closes: !isRead)
    }

    /// Drops the body. - Returns: whether all of it came.
    private func drain(_ deadline: ConnectionDeadline) async throws -> Bool {
        let alarm = deadline.begin(deadline.reading)
        defer { alarm.cancel() }
        var dropped = 0
        for try await part in body {
            dropped += part.readableBytes
            if dropped > Self.mostDrained { return false }
        }
        return true
    }

    /// - Throws: for a body that is too large, or that is not as its head and its own frame say: the connection must end.
    func wholeBody(upTo limit: Int, _ deadline: ConnectionDeadline) async throws(APIFault) -> [UInt8] {
        guard announcesBody else { return [] }
        let alarm = deadline.begin(deadline.reading)
        defer { alarm.cancel() }
        var bytes: [UInt8] = []
        var dropped = 0
        do {
            for try await part in body {
                if dropped == 0, bytes.count + part.readableBytes <= limit {
                    bytes += part.readableBytesView
                } else {
                    bytes = []
                    dropped += part.readableBytes
                    if dropped > Self.mostDrained { break }
                }
            }
        } catch {
            throw .badRequest("the body ends too early, or is not framed as HTTP wants it")
        }
        if dropped > 0 { throw .tooLarge("the body is larger than \(limit) bytes") }
        if let length = headers[.contentLength], Int(length) != bytes.count {
            throw .badRequest("the body ends before the length that its head says")
        }
        return bytes
    }
}
