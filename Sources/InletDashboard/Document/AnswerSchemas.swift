package import InletCore

/// The form of a command's answer to programs (`--json`).
package struct CommandAnswer: Sendable {
    package enum Form: String, Sendable {
        case object
        /// One object a line.
        case lines
    }

    /// Without `inlet`; commands below it answer the same.
    let command: String
    let form: Form
    /// nil for objects that another program declares.
    let type: (any (Decodable & Sendable).Type)?
    let note: String

    package init(_ command: String, _ form: Form, _ type: (any (Decodable & Sendable).Type)?, _ note: String = "") {
        (self.command, self.form, self.type, self.note) = (command, form, type, note)
    }

    /// The answers with their schemas, and the schemas that those name, for the manual's reference page.
    package static func reference(_ answers: [CommandAnswer]) -> JSONValue {
        var types: [String: any NamedSchema.Type] = [:]
        let rows = answers.map { answer in
            let schema = answer.type.map { SchemaReader.schema(of: $0) }
            schema?.collect(&types)
            return JSONValue.members([
                "command": .string(answer.command), "form": .string(answer.form.rawValue), "schema": schema?.json,
                "note": answer.note.isEmpty ? nil : .string(answer.note),
            ])
        }
        return .object(["answers": .array(rows), "schemas": .object(types.mapValues { $0.schema.json })])
    }
}
