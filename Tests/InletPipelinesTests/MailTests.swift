import Foundation
import InletCore
import InletLinux
import InletTestSupport
import Synchronization
import SystemPackage
import Testing

@testable import InletPipelines
@testable import InletTransfer

/// Mails, and the server's side of their way.
@Suite struct MailTests {
    private static let now = WallTime(milliseconds: 1_700_000_000_000)
    private static let message = NotificationMessage(
        title: "SAFE TO REMOVE: EOS_A", text: "186 files\n.hidden: proved", link: "https://nas.lan/#/cards/1")
    private static let account = MailAccount(
        server: "", user: "me@mail.lan", password: Secret("pass canary"), from: "me@mail.lan", to: ["a@b.c", "d@e.f"])

    private func text(_ mail: Mail) -> (header: [String], body: String) {
        let whole = String(decoding: mail.text, as: UTF8.self)
        let parts = whole.components(separatedBy: "\r\n\r\n")
        let body = Data(base64Encoded: parts[1], options: .ignoreUnknownCharacters) ?? Data()
        return (parts[0].components(separatedBy: "\r\n"), String(decoding: body, as: UTF8.self))
    }

    @Test func `a mail has the header of an automatic one and a text in UTF-8`() {
        let mail = Mail(Self.message, Self.account, id: "inlet-j-7", machine: "Nas.lan", at: Self.now)
        let (header, body) = text(mail)
        #expect(
            header == [
                "From: Inlet <me@mail.lan>", "To: a@b.c, d@e.f", "Subject: SAFE TO REMOVE: EOS_A",
                "Date: Tue, 14 Nov 2023 22:13:20 +0000", "Message-ID: <inlet-j-7@nas.lan>",
                "Auto-Submitted: auto-generated", "MIME-Version: 1.0", "Content-Type: text/plain; charset=utf-8",
                "Content-Transfer-Encoding: base64",
            ])
        #expect(body == "186 files\r\n.hidden: proved\r\nhttps://nas.lan/#/cards/1\r\n")
    }

    @Test func `a failure is important, and no title ends a line of the header`() throws {
        let title = "CALL SOMEBODY: Zürich – " + String(repeating: "カメラ", count: 10)
        let message = NotificationMessage(title: title, text: "x", isUrgent: true)
        let (header, _) = text(Mail(message, Self.account, id: "i", machine: "böx", at: Self.now))
        #expect(header.contains("Importance: high") && header.contains("X-Priority: 1"))
        #expect(header.contains("Message-ID: <i@bx>"))
        let start = try #require(header.firstIndex { $0.hasPrefix("Subject: ") })
        let lines =
            [header[start].dropFirst(9)] + header[(start + 1)...].prefix { $0.hasPrefix(" ") }.map { $0.dropFirst() }
        #expect(
            lines.count > 1 && lines.allSatisfy { $0.hasPrefix("=?utf-8?B?") && $0.hasSuffix("?=") && $0.count <= 75 })
        let words = lines.map { Data(base64Encoded: String($0.dropFirst(10).dropLast(2))) ?? Data() }
        // Each word is whole: a character is never cut.
        #expect(words.map { String(decoding: $0, as: UTF8.self) }.joined() == title)
        let bad = Mail(
            NotificationMessage(title: "a\r\nBcc: x@y", text: ""), Self.account, id: "i", machine: "", at: Self.now)
        #expect(!text(bad).header.contains { $0.hasPrefix("Bcc") })
    }

    @Test(arguments: [
        ("smtps://mail.lan", "mail.lan:465"), ("smtp://mail.lan", "mail.lan:587"),
        ("smtp://mail.lan:25", "mail.lan:25"),
        ("smtp://[::1]", "[::1]:587"), ("smtps://mail.lan:2465/", "mail.lan:2465"), ("SMTP://Mail.lan", "mail.lan:587"),
        ("smtp://mail.lan/host", nil), ("https://mail.lan", nil), ("mail.lan", nil), ("smtp://me:x@mail.lan", nil),
        ("smtp://", nil),
    ])
    func `a mail server is an address with a port`(_ text: String, _ expected: String?) {
        #expect(MailServer(text)?.authority == expected)
    }

    // MARK: - The way

    private static let usualAnswers = [
        "EHLO": "250-mail.lan\r\n250-AUTH PLAIN\r\n250 8BITMIME", "AUTH": "235 yes", "DATA": "354 go",
        "QUIT": "221 bye", ".": "250 queued",
    ]

    /// The server's side: answers by the first word of each command, and notes everything.
    private static func serve(
        _ connection: ServerConnection, _ answers: [String: String], _ said: Listing<String>
    ) throws {
        try connection.write("220 mail.lan ready\r\n")
        while true {
            let line = try connection.readLine()
            said.add(line)
            let verb = line.prefix { $0 != " " && $0 != ":" }.uppercased()
            let answer = answers[verb] ?? "250 ok"
            if verb == "AUTH" {
                try connection.write("334 \r\n")
                said.add(try connection.readLine())
            }
            try connection.write(answer + "\r\n")
            guard verb == "DATA", answer.hasPrefix("354") else { continue }
            var text: [String] = []
            while text.last != "." { text.append(try connection.readLine()) }
            said.add(text.dropLast().joined(separator: "\r\n"))
            try connection.write((answers["."] ?? "") + "\r\n")
        }
    }

    /// Sends once to a server with some answers of its own.
    private func send(
        _ answers: [String: String] = [:], allowsPlain: Bool = true, timeout: Duration = .seconds(20)
    ) async throws -> (outcome: NotificationOutcome, said: [String]) {
        let said = Listing<String>()
        let all = Self.usualAnswers.merging(answers) { $1 }
        let server = try ScriptedServer { try Self.serve($0, all, said) }
        var account = Self.account
        account.server = "smtp://127.0.0.1:\(server.port)"
        let client = MailClient(
            try #require(MailServer(account.server)), login: ("me@mail.lan", Secret("pass canary")), trust: .system,
            allowsPlain: allowsPlain, timeout: timeout, pool: BlockingPool(name: "mail", threads: 1))
        let sender = MessageClient(service: .smtp(account), way: .mail(client, account), timeout: timeout)
        let outcome = await sender.send(Self.message, id: "inlet-j-7", machine: "nas", at: Self.now)
        #expect(!"\(outcome)".contains("canary"), "\(outcome)")
        return (outcome, said.all)
    }

    @Test func `a mail is handed over with a login, to all recipients, once`() async throws {
        let (outcome, said) = try await send()
        #expect(outcome == .taken)
        #expect(said.first?.hasPrefix("EHLO ") == true && said.filter { $0 == "DATA" }.count == 1)
        #expect(said.contains { $0.hasPrefix("MAIL FROM:<me@mail.lan>") })
        #expect(said.filter { $0.hasPrefix("RCPT TO:") } == ["RCPT TO:<a@b.c>", "RCPT TO:<d@e.f>"])
        let login = Data("\0me@mail.lan\0pass canary".utf8).base64EncodedString()
        #expect(said.contains("AUTH PLAIN") && said.contains(login), "\(said)")
        let data = try #require(said.firstIndex(of: "DATA"))
        let mail = Mail(Self.message, Self.account, id: "inlet-j-7", machine: "nas", at: Self.now)
        #expect(said[data + 1] + "\r\n" == String(decoding: mail.text, as: UTF8.self))
    }

    @Test(arguments: [
        ("MAIL", "451 later", "unanswered"), ("RCPT", "450 busy", "unanswered"), ("DATA", "421 closing", "unanswered"),
        (".", "452 full", "unanswered"), ("AUTH", "454 not now", "unanswered"),
        ("AUTH", "535 wrong pass canary", "refused"),
        ("MAIL", "550 no", "refused"), ("RCPT", "550 unknown", "refused"), (".", "554 spam", "refused"),
    ])
    func `a server says whether it is worth another try`(_ verb: String, _ answer: String, _ expected: String)
        async throws
    {
        let (outcome, _) = try await send([verb: answer])
        switch (outcome, expected) {
        case (.unanswered(nil, let reason), "unanswered"), (.refused(let reason, nil), "refused"):
            #expect(reason.contains(" answered: \(answer.replacing("pass canary", with: "***"))"), "\(reason)")
        default: Issue.record("\(outcome)")
        }
    }

    @Test func `without TLS nothing is said that needs it, and a server that is silent has not answered`() async throws
    {
        let (open, said) = try await send(allowsPlain: false)
        guard case .unanswered(nil, let reason) = open else {
            Issue.record("\(open)")
            return
        }
        #expect(reason.contains("offers no STARTTLS; use smtps://"), "\(reason)")
        #expect(!said.contains { $0.hasPrefix("AUTH") || $0.hasPrefix("MAIL") }, "\(said)")
        let (silent, _) = try await send(["EHLO": "250-mail.lan"], timeout: .milliseconds(500))
        guard case .unanswered(nil, let why) = silent else {
            Issue.record("\(silent)")
            return
        }
        #expect(why.contains("no answer within 500ms"), "\(why)")
    }

    @Test func `a mail that is cancelled ends`() async throws {
        let isAsked = Mutex(false)
        let server = try ScriptedServer { connection in
            isAsked.withLock { $0 = true }
            connection.waitForEnd()
        }
        let client = MailClient(
            try #require(MailServer("smtp://127.0.0.1:\(server.port)")), login: nil, trust: .system, allowsPlain: true,
            timeout: .seconds(300), pool: BlockingPool(name: "mail", threads: 1))
        let sending = Task { try await client.send([], from: "a@b.c", to: ["a@b.c"]) }
        try await eventually("it is asked") { isAsked.withLock(\.self) }
        sending.cancel()
        let error = await #expect(throws: TransferError.self) { try await sending.value }
        #expect(error?.code == .cancelled)
    }
}
