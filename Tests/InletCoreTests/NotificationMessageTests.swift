import InletCore
import Testing

/// What people read of each event.
@Suite struct NotificationMessageTests {
    private static let signature = "\nInlet on nas"
    /// 2026-11-26T10:00:00Z, by this machine's clock.
    private static let quietSince: String = {
        let time = WallTime(milliseconds: 1_795_687_200_000)
        return "\(time.day()) \(time.clock())"
    }()

    private static let rows: [(NotificationEvent, String, NotificationMessage)] = [
        (
            .delivered,
            #"{"path":"/in/a/clip.mov","size":2097152,"state":"delivered","deliveries":["#
                + #"{"destination":"lib","state":"delivered"},"#
                + #"{"destination":"cloud","state":"delivered","url":"https://cdn/clip.mov"}]}"#,
            NotificationMessage(
                title: "Delivered: clip.mov",
                text: "/in/a/clip.mov\n2 MiB\nlib: delivered\ncloud: delivered\(signature)",
                link: "https://cdn/clip.mov", tags: ["white_check_mark"])
        ),
        (
            .failed,
            #"{"path":"/in/clip.mov","state":"failed","reason":"no room","deliveries":["#
                + #"{"destination":"lib","state":"failed","reason":"disk full","url":"https://x"}]}"#,
            NotificationMessage(
                title: "Failed: clip.mov", text: "/in/clip.mov\nno room\nlib: failed: disk full\(signature)",
                isUrgent: true, tags: ["rotating_light"])
        ),
        (
            .failed, #"{"path":"/in/clip.mov","state":"expired"}"#,
            NotificationMessage(
                title: "Expired: clip.mov", text: "/in/clip.mov\(signature)", isUrgent: true, tags: ["rotating_light"])
        ),
        (
            .failed, #"{"path":"/in/clip.mov","state":"gone"}"#,
            NotificationMessage(
                title: "Missing: clip.mov", text: "/in/clip.mov\(signature)", isUrgent: true, tags: ["rotating_light"])
        ),
        (
            .rejected, #"{"path":"/in/huge.bin","state":"rejected","reason":"too large"}"#,
            NotificationMessage(
                title: "Rejected: huge.bin", text: "/in/huge.bin\ntoo large\(signature)", isUrgent: true,
                tags: ["rotating_light"])
        ),
        (
            .batchDone,
            #"{"name":"A001","path":"/in/A001","outcome":"complete","files":3,"#
                + #""counts":{"delivered":2,"duplicate":1},"not_delivered":[]}"#,
            NotificationMessage(
                title: "Complete: A001", text: "/in/A001\n3 of 3 files delivered\(signature)",
                tags: ["white_check_mark"])
        ),
        (
            .batchDone,
            #"{"name":"A001","path":"/in/A001","outcome":"partial","files":3,"counts":{"delivered":1,"failed":2},"#
                + #""not_delivered":[{"path":"A001/x","state":"failed","reason":"no"},{"path":"A001/y","state":"gone"}]}"#,
            NotificationMessage(
                title: "Partial: A001",
                text: "/in/A001\n1 of 3 files delivered\nA001/x: no\nA001/y: gone\(signature)", isUrgent: true,
                tags: ["rotating_light"])
        ),
        (
            .destinationDown, #"{"name":"lib","state":"down","reason":"no route"}"#,
            NotificationMessage(
                title: "Destination down: lib", text: "no route\nInlet retries automatically.\(signature)",
                isUrgent: true, tags: ["rotating_light"])
        ),
        (
            .destinationUp, #"{"name":"lib","state":"up"}"#,
            NotificationMessage(
                title: "Destination up: lib", text: "Its deliveries continue.\(signature)", tags: ["white_check_mark"])
        ),
        (
            .rootPaused, #"{"path":"/mnt/in","state":"paused","reason":"not mounted"}"#,
            NotificationMessage(
                title: "Folder paused: /mnt/in", text: "not mounted\(signature)", isUrgent: true,
                tags: ["rotating_light"])
        ),
        (
            .rootQuiet, #"{"path":"/in","state":"quiet","since":"2026-11-26T10:00:00.000Z","expect":"24h"}"#,
            NotificationMessage(
                title: "Folder quiet: /in",
                text: "Since \(quietSince) no new file came; one is expected every 24h.\(signature)", isUrgent: true,
                tags: ["rotating_light"])
        ),
        (
            .rootRecovered, #"{"path":"/in","state":"active","since":"2026-11-26T10:00:00.000Z"}"#,
            NotificationMessage(
                title: "Folder active: /in", text: "New files come again.\(signature)", tags: ["white_check_mark"])
        ),
        (
            .agentSilent, #"{"name":"nas2","state":"silent","since":"2026-11-26T10:00:00Z"}"#,
            NotificationMessage(
                title: "Agent silent: nas2",
                text: "Since \(quietSince) the fleet heard nothing of it. Its files wait for it.\(signature)",
                isUrgent: true, tags: ["rotating_light"])
        ),
        (
            .volumeDone,
            #"{"name":"EOS_A","state":"safe","text":"Everything on it is proved.","files":186,"bytes":1073741824,"#
                + #""lines":["lib: 186 of 186, proved","nas: 186 of 186, proved"],"link":"https://nas/#/cards/1"}"#,
            NotificationMessage(
                title: "SAFE TO REMOVE: EOS_A",
                text: "Everything on it is proved.\n186 files, 1 GiB\nlib: 186 of 186, proved\n"
                    + "nas: 186 of 186, proved\(signature)",
                link: "https://nas/#/cards/1", tags: ["white_check_mark"])
        ),
        (
            .volumeProblem, #"{"name":"EOS_A","state":"problem","text":"3 files cannot be read.","files":1}"#,
            NotificationMessage(
                title: "CALL SOMEBODY: EOS_A", text: "3 files cannot be read.\n1 file\(signature)", isUrgent: true,
                tags: ["rotating_light"])
        ),
    ]

    @Test(arguments: rows)
    func `each event has its title, its lines, its urgency and its link`(
        _ event: NotificationEvent, _ payload: String, _ expected: NotificationMessage
    ) {
        #expect(NotificationMessage(event, Array(payload.utf8), host: "nas") == expected)
    }

    @Test func `every event is in the table`() {
        #expect(Set(Self.rows.map(\.0)) == Set(NotificationEvent.allCases))
    }

    @Test(arguments: [
        (NotificationEvent.volumeDone, "{}"), (.volumeDone, #"{"state":"done"}"#),
        (.volumeProblem, #"{"state":"safe"}"#),
        (.volumeDone, #"{"state":"problem"}"#), (.volumeDone, "no JSON"),
    ])
    func `safety is claimed only where event and state say so`(_ event: NotificationEvent, _ payload: String) {
        let message = NotificationMessage(event, Array(payload.utf8), host: "nas")
        #expect(!message.title.contains("SAFE"), "\(message)")
    }

    @Test func `several cards are one message, those with problems first`() {
        let cards: [(NotificationEvent, String)] = [
            (.volumeDone, #"{"name":"A","state":"safe","text":"good","link":"https://nas/a"}"#),
            (
                .volumeProblem,
                #"{"name":"B","state":"problem","text":"bad","lines":["lib: 1 of 2"],"link":"https://nas/b"}"#
            ),
            (.volumeDone, #"{"name":"C","state":"safe","text":"good"}"#),
        ]
        let message = NotificationMessage(cards: cards.map { ($0, Array($1.utf8)) }, host: "nas")
        #expect(
            message
                == NotificationMessage(
                    title: "CALL SOMEBODY: B · SAFE TO REMOVE: A, C",
                    text: "CALL SOMEBODY: B\nbad\nlib: 1 of 2\n\nSAFE TO REMOVE: A\ngood\n\nSAFE TO REMOVE: C\ngood"
                        + Self.signature,
                    isUrgent: true, link: "https://nas/b", tags: ["rotating_light"]))
    }

    @Test func `long lists are cut and counted, and no control character or odd link comes through`() {
        let files = (1...13).map { #"{"path":"\#($0)","state":"failed"}"# }.joined(separator: ",")
        let batch = NotificationMessage(
            .batchDone, Array(#"{"outcome":"failed","files":13,"not_delivered":[\#(files)]}"#.utf8), host: "nas")
        #expect(batch.text.contains("\n10: failed\n… and 3 more\n"), "\(batch.text)")
        let card = #"{"name":"A\u001b[2J\nB","text":"x\u202Ey","link":"javascript:alert(1)"}"#
        let odd = NotificationMessage(.volumeDone, Array(card.utf8), host: "nas")
        #expect(odd.title == #"Card done: A\x1B[2J\x0AB"# && odd.link == nil && odd.text.hasPrefix(#"x\xE2\x80\xAEy"#))
    }

    @Test(arguments: [
        ("abc", 3, "abc"), ("abcd", 3, "…"), ("abcdef", 5, "ab…"), ("éé", 4, "éé"), ("ééé", 5, "é…"), ("👨‍👩‍👧x", 10, "…"),
    ])
    func `a text is cut between characters, with an ellipsis that fits`(
        _ text: String, _ limit: Int, _ expected: String
    ) {
        #expect(text.shortened(to: limit, by: \.utf8.count) == expected)
    }
}
