// What conversations are called, as far as the page has seen them: tools name them by channel.

import { titleOf } from "./conversation_rows.js";

const titles = new Map();

export const noteTitles = (views) => views.forEach((view) => titles.set(view.channel, titleOf(view)));

/** A conversation's title; its channel where the page has not seen it. */
export const titleFor = (channel) => titles.get(channel) ?? channel;
