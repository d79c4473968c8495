internal import Foundation
internal import InletCore
internal import InletLinux

/// A notification as a mail (RFC 5322): plain text in UTF-8.
struct Mail: Sendable {
    let from: String
    let to: [String]
    /// Header and body, lines ending with CR LF.
    let text: [UInt8]

    /// - Parameters:
    ///   - id: the same for every attempt: readers drop a repetition by its Message-ID.
    ///   - machine: this machine's name.
    init(_ message: NotificationMessage, _ account: MailAccount, id: String, machine: String, at now: WallTime) {
        (from, to) = (account.from, account.to)
        var header = [
            "From: Inlet <\(from)>", "To: \(to.joined(separator: ", "))", "Subject: \(Self.subject(message.title))",
            "Date: \(Self.date(now))", "Message-ID: <\(id)@\(Self.domain(machine))>",
            // RFC 3834: nobody answers it with a vacation notice.
            "Auto-Submitted: auto-generated",
        ]
        if message.isUrgent { header += ["Importance: high", "X-Priority: 1"] }
        header += [
            "MIME-Version: 1.0", "Content-Type: text/plain; charset=utf-8", "Content-Transfer-Encoding: base64", "",
        ]
        let body = MessageService.withLink(message.text, message.link).replacing("\n", with: "\r\n") + "\r\n"
        let lines = header.map { $0 + "\r\n" }.joined()
        text = Array(lines.utf8) + Self.base64(body) + Array("\r\n".utf8)
    }

    private static func base64(_ text: String) -> [UInt8] {
        Array(
            Data(text.utf8).base64EncodedData(options: [
                .lineLength76Characters, .endLineWithCarriageReturn, .endLineWithLineFeed,
            ]))
    }

    /// A mail client shows no more.
    private static let longestSubject = 200

    /// RFC 2047 where it is not plain ASCII: encoded words of whole characters, each at most 75 bytes long.
    private static func subject(_ title: String) -> String {
        let title = title.shortened(to: longestSubject, by: \.utf8.count)
        if title.utf8.allSatisfy({ (0x20..<0x7F).contains($0) }), !title.contains("=?") { return title }
        var words = [""]
        for character in title {
            if words[words.count - 1].utf8.count + String(character).utf8.count > 45 { words.append("") }
            words[words.count - 1].append(character)
        }
        return words.map { "=?utf-8?B?\(Data($0.utf8).base64EncodedString())?=" }.joined(separator: "\r\n ")
    }

    /// RFC 5322, section 3.3, in UTC.
    static func date(_ time: WallTime) -> String {
        let days = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"]
        let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
        let text = time.rfc3339
        let parts = text.prefix(10).split(separator: "-")
        let day = days[Int(max(time.milliseconds, 0) / 86_400_000 % 7)]
        let month = Int(parts[1]).map { months[$0 - 1] } ?? ""
        return "\(day), \(parts[2]) \(month) \(parts[0]) \(text.dropFirst(11).prefix(8)) +0000"
    }

    /// The right side of a Message-ID.
    private static func domain(_ machine: String) -> String {
        let name = machine.lowercased().filter { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "-" || $0 == ".") }
        return name.isEmpty ? "localhost" : name
    }
}
