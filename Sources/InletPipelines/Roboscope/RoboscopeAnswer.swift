internal import InletCore
internal import InletLinux
internal import InletTransfer

/// Reads answers, and says what one that is no success means.
enum RoboscopeAnswer {
    /// A list of objects: bare, as the server sends it, or the only list in an object.
    static func list(_ response: HTTPResponse, _ what: String) throws(DeliveryError) -> [JSONObject] {
        var found: [JSONObject] = []
        try each(response, what) { found.append($0) }
        return found
    }

    /// Gives `take` the objects of a list one by one: long ones are never in memory as values.
    static func each(
        _ response: HTTPResponse, _ what: String, _ take: (JSONObject) -> Void
    ) throws(DeliveryError) {
        var reader = JSONReader(response.body)
        var isFound = false
        do throws(JSONFault) {
            if try reader.next() == UInt8(ascii: "{") {
                try reader.members { _, reader throws(JSONFault) in
                    if try reader.next() == UInt8(ascii: "["), !isFound {
                        isFound = true
                        try objects(&reader, take)
                    } else {
                        _ = try reader.value()
                    }
                }
            } else {
                isFound = true
                try objects(&reader, take)
            }
            try reader.end()
        } catch {
            throw unreadable(what, "\(error)")
        }
        if !isFound { throw unreadable(what, "there is no list in it") }
    }

    private static func objects(_ reader: inout JSONReader, _ take: (JSONObject) -> Void) throws(JSONFault) {
        try reader.elements { reader throws(JSONFault) in
            guard let fields = try reader.value().object else { throw reader.fault("the list holds more than objects") }
            take(fields)
        }
    }

    static func object(_ response: HTTPResponse, _ what: String) throws(DeliveryError) -> JSONObject {
        let value: JSONValue
        do {
            value = try JSONValue(parsing: response.body)
        } catch {
            throw unreadable(what, "\(error)")
        }
        guard let fields = value.object else { throw unreadable(what, "it is no object") }
        return fields
    }

    /// Our request may have been done: asking once more tells.
    static func unreadable(_ what: String, _ why: String) -> DeliveryError {
        .misunderstood("\(what): the answer cannot be understood (\(why))")
    }

    /// 400 and 422 are about what we sent, 401 and 403 about the token, 409 about the version; 5xx and 429 pass.
    ///
    /// Only in the server's own words, which are JSON or plain text, is something not there: its host has pages for that.
    static func error(_ response: HTTPResponse, _ what: String) -> DeliveryError {
        let heard = AnswerForm.words.heard(response, secretsMatter: true)
        switch response.status {
        case 405 where heard.word != .foreign, 501 where heard.word != .foreign:
            return DeliveryError(
                .giveUp, .notFound, "\(what): the server has no such call (\(response.status))",
                heard: Heard(response.status, .refusal))
        case 404 where heard.word != .foreign, 410 where heard.word != .foreign:
            return DeliveryError(.giveUp, .notFound, "\(what): there is none (\(response.status))", heard: heard)
        default: return DeliveryError(response, what, in: .words, secretsMatter: true, now: .now)
        }
    }
}
