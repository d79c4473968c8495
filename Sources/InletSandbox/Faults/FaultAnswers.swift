import Foundation
import HTTPTypes
import Hummingbird
import InletCore
import NIOCore

extension Faults {
    /// The answer of an `action` that replaces the handling; nil for actions that only alter it.
    func replacement(for action: FaultAction, _ call: inout SandboxCall) async throws -> Response? {
        switch action {
        case .earlyReply(let reply):
            var response = Response(reply)
            response.headers[.connection] = "close"
            return response
        case .echo(let reply): return Response(Echo(call.request, body: try await call.body.whole()).inside(reply))
        case .delay(let duration):
            try await Task.sleep(for: duration)
            return nil
        case .hold(let gate):
            await gate.wait()
            return nil
        case .status, .reply, .stall, .endlessAnswer, .garbage, .html, .redirect: break
        case .replyAfterWork, .reset, .slowRead, .missingETag, .wrongETag, .partURLs, .expiredURLs, .loseAnswer,
            .withholdAnswer, .truncateAnswer, .wrongLength, .damageAnswer, .conflict:
            return nil
        }
        try await call.body.discard()
        switch action {
        case .status(let code, let retryAfter):
            let fields = retryAfter.map { ["Retry-After": String($0)] } ?? [:]
            return Response(
                SandboxReply(code, fields: fields, body: "status \(code), by the sandbox's fault plan\n"))
        case .reply(let reply): return Response(reply)
        case .stall: try await ConnectionDropped.withhold(call.channel)
        case .garbage:
            return Response(
                status: .ok, headers: [.contentType: "application/json"],
                body: ResponseBody(byteBuffer: ByteBuffer(bytes: randomBytes(512))))
        case .redirect(let address): return Response(status: .temporaryRedirect, headers: [.location: address])
        case .html:
            return Response(
                SandboxReply(200, type: "text/html", body: "<!doctype html><title>Sign in</title><p>Welcome."))
        default: return endless(on: call.channel)
        }
    }

    /// White space is JSON that never begins; a reader's own bounds must end it.
    private func endless(on channel: any Channel) -> Response {
        let chunk = ByteBuffer(repeating: UInt8(ascii: " "), count: 1 << 16)
        let body = ResponseBody { [self] writer in
            hold(channel)
            defer { release(channel) }
            while channel.isActive { try await writer.write(chunk) }
            throw ConnectionDropped()
        }
        return Response(status: .ok, headers: [.contentType: "application/json"], body: body)
    }
}

extension Response {
    /// The answer to finished work, altered by the fault.
    func altered(by fault: FaultAction, on channel: any Channel) async throws -> Response {
        switch fault {
        case .loseAnswer: try await ConnectionDropped.drop(channel)
        case .withholdAnswer: try await ConnectionDropped.withhold(channel)
        case .replyAfterWork(let reply): return Response(reply)
        case .truncateAnswer(let count): return written(by: fault, count, contentLength: body.contentLength)
        case .damageAnswer(let offset): return written(by: fault, offset, contentLength: body.contentLength)
        case .wrongLength(let difference):
            var response = written(by: fault, 0, contentLength: nil)
            response.headers[.contentLength] = String(max(0, (body.contentLength ?? 0) + difference))
            return response
        default: return self
        }
    }

    private func written(by fault: FaultAction, _ rest: Int, contentLength: Int?) -> Response {
        let body = body
        let faulty = ResponseBody(contentLength: contentLength) { writer in
            try await body.write(FaultWriter(fault: fault, rest: rest, writer: writer))
        }
        return Response(status: status, headers: headers, body: faulty)
    }
}

/// Ends the connection after `rest` bytes (`truncateAnswer`), changes the byte after as many (`damageAnswer`), or ends
/// the connection at the answer's end (`wrongLength`).
private struct FaultWriter: ResponseBodyWriter {
    let fault: FaultAction
    var rest: Int
    var writer: any ResponseBodyWriter

    mutating func write(_ buffer: ByteBuffer) async throws {
        var buffer = buffer
        switch fault {
        case .truncateAnswer:
            let part = buffer.readSlice(length: min(rest, buffer.readableBytes)) ?? ByteBuffer()
            rest -= part.readableBytes
            try await writer.write(part)
            if rest == 0 { throw ConnectionDropped() }
        case .damageAnswer:
            let place = buffer.readerIndex + rest
            if rest >= 0, let byte: UInt8 = buffer.getInteger(at: place) { buffer.setInteger(~byte, at: place) }
            rest -= buffer.readableBytes
            try await writer.write(buffer)
        default: try await writer.write(buffer)
        }
    }

    consuming func finish(_ trailingHeaders: HTTPFields?) async throws {
        if case .wrongLength = fault { throw ConnectionDropped() }
        try await writer.finish(trailingHeaders)
    }
}

/// A request as a hostile server repeats it: each value unchanged, and in the spellings that programs write values in.
package struct Echo: Sendable {
    /// The placeholder in the body of a `FaultReply`.
    package static let mark = "{echo}"

    private let text: String

    init(_ request: Request, body: Data) {
        // Credentials come first, because clients read answers only to a limit.
        let isLogin = { (field: HTTPField) in
            ["authorization", "token", "key"].contains { field.name.canonicalName.contains($0) }
        }
        var values = (request.headers.filter(isLogin) + request.headers.filter { !isLogin($0) }).map(\.value)
        for value in values {
            let words = value.split(separator: " ", maxSplits: 1).map(String.init)
            guard words.count == 2 else { continue }
            values.append(words[1])
            guard words[0].lowercased() == "basic", let data = Data(base64Encoded: words[1]) else { continue }
            let login = String(decoding: data, as: UTF8.self)
            values += [login, login.split(separator: ":", maxSplits: 1).last.map(String.init) ?? login]
        }
        values.append(request.uri.string)
        // An upload's file is not text, and long.
        if let text = String(data: body, encoding: .utf8), text.utf8.count <= 64 << 10 { values.append(text) }
        text = values.flatMap(Self.spellings).joined(separator: " | ")
    }

    private static func spellings(_ value: String) -> [String] {
        [
            value, Data(value.utf8).base64EncodedString(), Data(("x" + value).utf8).base64EncodedString(),
            value.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? value, json(value), xml(value),
            value.unicodeScalars.map { "\\u" + String(format: "%04x", $0.value) }.joined(),
        ]
    }

    /// The reply with the request in it, escaped as the reply's type requires.
    func inside(_ reply: FaultReply) -> FaultReply {
        let type = reply.fields["Content-Type"] ?? ""
        let written = type.contains("json") ? Self.json(text) : type.contains("ml") ? Self.xml(text) : text
        var reply = reply
        reply.body = reply.body.replacingOccurrences(of: Self.mark, with: written)
        return reply
    }

    /// Without its quotes, and with escaped slashes.
    private static func json(_ text: String) -> String {
        String(decoding: JSON.note(of: [text]).dropFirst(2).dropLast(2), as: UTF8.self).replacing("/", with: "\\/")
    }

    private static func xml(_ text: String) -> String {
        var text = text
        for (character, name) in [("&", "amp"), ("<", "lt"), (">", "gt"), ("\"", "quot"), ("'", "#39"), ("/", "#x2F")] {
            text = text.replacingOccurrences(of: character, with: "&\(name);")
        }
        return text
    }
}
