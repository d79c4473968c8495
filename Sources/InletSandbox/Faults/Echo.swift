import Foundation
import HTTPTypes
import Hummingbird

/// A request as an unkind server repeats it: each value as it came, and in the spellings that programs write values in.
package struct Echo: Sendable {
    /// Stands for it in the body of a `FaultReply`.
    package static let mark = "{echo}"

    private let text: String

    init(_ request: Request, body: Data) {
        // What says who asks comes first: answers are read to a length only.
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
        // The file of an upload is no text, and a long one.
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

    /// The reply with the request in it, as the reply's type writes texts.
    func inside(_ reply: FaultReply) -> FaultReply {
        let type = reply.fields["Content-Type"] ?? ""
        let written = type.contains("json") ? Self.json(text) : type.contains("ml") ? Self.xml(text) : text
        var reply = reply
        reply.body = reply.body.replacingOccurrences(of: Self.mark, with: written)
        return reply
    }

    /// Without its quotes, and with escaped slashes.
    private static func json(_ text: String) -> String {
        // A text is always JSON.
        let quoted = (try? JSONSerialization.data(withJSONObject: [text])) ?? Data()
        return String(decoding: quoted.dropFirst(2).dropLast(2), as: UTF8.self)
    }

    private static func xml(_ text: String) -> String {
        var text = text
        for (character, name) in [("&", "amp"), ("<", "lt"), (">", "gt"), ("\"", "quot"), ("'", "#39"), ("/", "#x2F")] {
            text = text.replacingOccurrences(of: character, with: "&\(name);")
        }
        return text
    }
}
