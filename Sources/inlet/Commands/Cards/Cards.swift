import ArgumentParser
import InletCore
import InletDashboard

struct Cards: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "cards", abstract: "Show the cards in the readers, and whether they may be taken out.",
        discussion: """
            A card is named by its label, or by its UUID. Two cards of one label have names of their own, such as
            'UNTITLED (2)'.

            Examples:
              inlet cards
              inlet cards show EOS_DIGITAL
              inlet cards label EOS_DIGITAL --roll A003 --camera "B cam"
              inlet cards eject EOS_DIGITAL
            """,
        subcommands: [
            List.self, Show.self, History.self, Label.self, Leave.self, Resend.self, Eject.self, CardsMount.self,
            CardsUnmount.self,
        ],
        defaultSubcommand: List.self)

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "list", abstract: "List the cards in the readers.", discussion: "Example: inlet cards list")

        @OptionGroup var options: ConfigOption
        @Argument(help: "Only this card, with its list.") var card: String?
        @Flag(help: "Print one JSON object.") var json = false

        func run() async throws {
            let found = try await options.use { try await $0.ask(Endpoints.cards) }
            if let card { return try Cards.show(card, in: found, json: json) }
            if json { return Console.print(try Console.json(found)) }
            if found.cards.isEmpty { return Console.print("No card is in a reader") }
            let rows: [[StyledText]] = found.cards.map { card in
                [
                    StyledText(card.name, .strong), StyledText(card.headline, card.safe ? .good : .strong),
                    StyledText("\(card.files)"), StyledText(ByteText.format(card.bytes)),
                    StyledText(card.roll ?? "-"), StyledText(card.mount),
                ]
            }
            Console.print(
                Console.table(
                    [
                        .name("CARD"), .text("STATE"), .number("FILES"), .number("SIZE"), .text("ROLL"),
                        .name("MOUNTED AT"),
                    ], rows))
            if !found.missing_rolls.isEmpty {
                Console.print("No card was named \(found.missing_rolls.joined(separator: ", "))")
            }
        }
    }

    struct Show: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "show", abstract: "Show a card's verdict and the list below it.",
            discussion: "Exits with 1 while the card is not safe to remove.\n\nExample: inlet cards show EOS_DIGITAL")

        @OptionGroup var options: ConfigOption
        @Argument(help: "The card's name or UUID.") var card: String
        @Flag(help: "Print one JSON object.") var json = false

        func run() async throws {
            let found = try await options.use { try await $0.ask(Endpoints.cards) }
            try Cards.show(card, in: found, json: json)
        }
    }

    struct History: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "history", abstract: "List the stays of cards in a reader, newest first.",
            discussion: "Example: inlet cards history EOS_DIGITAL --limit 5")

        @OptionGroup var options: ConfigOption
        @Argument(help: "Only this card, by its name or UUID.") var card: String?
        @Option(help: "At most this many.") var limit = 50
        @Flag(help: "Print one JSON object a line.") var json = false

        func run() async throws {
            let stays = try await options.use {
                try await $0.ask(Endpoints.cardHistory, [.card: card, .limit: "\(limit)"])
            }
            if json {
                for stay in stays { Console.print(try Console.json(stay)) }
                return
            }
            if stays.isEmpty { return Console.print("No card was in a reader yet") }
            let rows: [[StyledText]] = stays.map { stay in
                [
                    StyledText(stay.name, .strong), StyledText(stay.roll ?? "-"),
                    StyledText(Console.time(stay.inserted_at)),
                    StyledText(stay.removed_at.map(Console.time) ?? "-"), StyledText("\(stay.files)"),
                    StyledText(ByteText.format(stay.bytes)), StyledText(stay.headline ?? "-"),
                ]
            }
            Console.print(
                Console.table(
                    [
                        .name("CARD"), .text("ROLL"), .text("INSERTED"), .text("REMOVED"), .number("FILES"),
                        .number("SIZE"), .note("STATE"),
                    ], rows))
        }
    }

    struct Label: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "label", abstract: "Name a card as the tape on it says.",
            discussion: """
                The names are fields of keys, labels and reports: {card.roll}, {card.camera}, {card.operator}. An empty text
                removes a name.

                Example: inlet cards label EOS_DIGITAL --roll A003
                """)

        @OptionGroup var options: ConfigOption
        @Argument(help: "The card's name or UUID.") var card: String
        @Option(help: "The roll, such as A003.") var roll: String?
        @Option(help: "The camera, such as \"B cam\".") var camera: String?
        @Option(help: "The person who shot it, or who copies it.") var `operator`: String?
        @Option(help: "A note for the report.") var note: String?

        func validate() throws {
            if [roll, camera, self.operator, note].allSatisfy({ $0 == nil }) {
                throw ValidationError("give --roll, --camera, --operator or --note")
            }
        }

        func run() async throws {
            let order = CardLabelOrder(roll: roll, camera: camera, operator: self.operator, note: note)
            try await Cards.act(options, Endpoints.labelCard, card, order)
        }
    }

    struct Leave: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "leave", abstract: "Say that the other files on a card may stay there.",
            discussion: """
                With 'volume_safe: everything', files that Inlet did not take hold a card up until you say this. Other files
                that come later are asked about again.

                Example: inlet cards leave EOS_DIGITAL
                """)

        @OptionGroup var options: ConfigOption
        @Argument(help: "The card's name or UUID.") var card: String

        func run() async throws { try await Cards.act(options, Endpoints.leaveOthers, card, NoBody.none) }
    }

    struct Resend: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "resend", abstract: "Send files of a card again that a destination has lost.",
            discussion: "Example: inlet cards resend EOS_DIGITAL")

        @OptionGroup var options: ConfigOption
        @Argument(help: "The card's name or UUID.") var card: String

        func run() async throws { try await Cards.act(options, Endpoints.resendMissing, card, NoBody.none) }
    }

    struct Eject: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "eject", abstract: "Unmount a card, once it is safe to remove.",
            discussion: """
                Writes what waits, unmounts the card, and switches its reader off where the system can. Refuses with the reason
                while something is not proved.

                Example: inlet cards eject EOS_DIGITAL
                """)

        @OptionGroup var options: ConfigOption
        @Argument(help: "The card's name or UUID.") var card: String

        func run() async throws { try await Cards.act(options, Endpoints.ejectCard, card, NoBody.none) }
    }

    private static func show(_ name: String, in found: CardsReport, json: Bool) throws {
        guard let card = found.cards.first(where: { [$0.name, $0.uuid].contains(name) }) else {
            let hint = Suggestion.hint(name, in: found.cards.map(\.name))
            throw ExitStatus.failed.saying("no card '\(name)' is in a reader\(hint)")
        }
        if json {
            Console.print(try Console.json(card))
        } else {
            Console.print(text(card))
        }
        if !card.safe { throw ExitStatus.failed.code }
    }

    private static func text(_ card: CardReport) -> String {
        var lines = ["\(card.headline)", "", "\(card.name), \(card.mount), inserted \(Console.time(card.inserted_at))"]
        let names = [("roll", card.roll), ("camera", card.camera ?? card.system), ("operator", card.operator)]
        let said = names.compactMap { name, value in value.map { "\(name) \($0)" } }
        if !said.isEmpty { lines.append(said.joined(separator: ", ")) }
        if let note = card.note { lines.append(note) }
        lines.append(card.writes ? "Routes may move and delete files on it" : "Inlet writes nothing to it")
        lines.append("")
        let marks = ["good": "✓", "waiting": "…", "bad": "✗"]
        lines += card.lines.map { "\(marks[$0.mark] ?? "·") \($0.text)" }
        return lines.joined(separator: "\n")
    }

    private static func act<Body: Codable & Sendable>(
        _ options: ConfigOption, _ endpoint: TypedEndpoint<Body, CommandReport>, _ card: String, _ body: Body
    ) async throws {
        let config = try options.load()
        try await ControlAccess.useRunning(
            at: config.controlSocket, absence: { "no agent is running; start it with 'inlet run'" }
        ) { try await $0.ask(endpoint, [.card: card], body: body).show() }
    }
}
